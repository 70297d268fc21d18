"""EnvProbe companion: the engine behind an executable paper on probing before acting.

The paper is *Ask the World Before Acting: Environment Probing for Calibrated Agent World Models*
(Song and Cai). The engine runs worlds, agents and policies, one episode at a time; sweeps run
the engine; metrics and statistics import none of them and work on frames and logs alone.
"""

__version__ = "0.1.0"
