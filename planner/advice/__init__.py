"""What a running job on spot should do now: wait, start, stay, move, or go to on-demand."""
