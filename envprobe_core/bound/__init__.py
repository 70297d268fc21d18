"""How far is the best possible? An exact optimum on small worlds, and relaxations on full-size ones (ours).

`small` is a world that can be enumerated, `states` its information states, `optimum` the best policy over
them, `exact` every policy's exact means; `ceilings` bounds the full-size worlds.
"""
