"""Buy or rent: what a useful accelerator-hour costs on a machine that is bought and in the cloud.

`figures` is the arithmetic of one case, `inputs` what a file and the catalog say, `tornado` what moves the answer,
`checks` whether the bill of materials is a machine that works; `answer` puts them together.
"""
