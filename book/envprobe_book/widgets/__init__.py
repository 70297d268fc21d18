"""Widgets: interactive figures that are live in JupyterLab and work in the static book without a kernel.

`host` shows one, `player` is what is shown. Each widget's front end is one ES module in
the form that anywidget reads (`export default { render({ model, el }) }`), and both hosts run the same one.
"""
