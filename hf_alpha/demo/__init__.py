"""A page in the browser: problems are answered, checked, explained, and renamed.

`service` answers and knows nothing of pages, `drawing` makes HTML of its answers, `page` and
`server` are the parts that need Gradio (`pip install 'hf_alpha[demo]'`), `space` writes a folder
for Hugging Face Spaces.
"""
