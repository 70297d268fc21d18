"""What a score function may read of a view, for tables and for who writes one."""

READABLE = {
    "c": "criticality of each field, 0 to 1; array [field]",
    "s": "staleness that the agent reports, as min(1, steps / 10); array [field]",
    "u": "uncertainty that the agent reports, 1 − confidence; array [field]",
    "d": "dependency role for the proposed action: 1, .5 or 0; array [field]",
    "value": "the believed values, −1 where unknown; array [field]",
    "staleness": "reported staleness in steps; array [field]",
    "confidence": "reported confidence in percent; array [field]",
    "step": "the decision step, from 0",
    "horizon": "how many decision steps an episode has",
    "budget": "probes that the episode may fire",
    "used": "probes that it has fired so far",
    "threshold": "what the best score must reach for a probe",
    "action": "the proposed task action, by number; −1 waits",
    "risk": "the agent's self-reported risk, 0 or 1",
    "draw": "63 random bits of this episode and step, the same in every run",
}
