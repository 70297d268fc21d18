"""The episode player: single episodes, recorded in full, told and laid out so that a reader can watch them.

`recording` turns a witnessed row into what the front end shows, `scenes` lays the world out, `pairs` sets two
policies on one seed side by side, `choosing` finds episodes by rule, `text` says what they show.
"""
