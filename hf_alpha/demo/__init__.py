"""A page in the browser: problems are answered, checked, explained, and renamed.

`choices` answers, `renaming` finds other names, `drawing` makes HTML; `page` and `server` need
Gradio (`pip install 'hf_alpha[demo]'`).
"""
