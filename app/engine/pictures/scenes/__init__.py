"""Read free English captions as scenes of a painter whose card lists what it knows. Pure, without torch."""
