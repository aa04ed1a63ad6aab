"""Pocket TTS and Gradium Phonon: small voices that draw each frame of sound as a point of the codec's space, by a flow head."""
