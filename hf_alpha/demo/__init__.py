"""A page in the browser: problems are answered, checked, explained, and renamed.

`choices` answers and finds other names, `drawing` makes HTML, `server` needs Gradio
(`pip install 'hf_alpha[demo]'`).
"""
