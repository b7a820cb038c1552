"""Step time and memory of a training job on a cluster; knows no prices."""
