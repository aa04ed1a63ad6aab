"""The family of VibeVoice: a language model hears what it has said and says how the next frame of sound is to be, which a diffusion head draws."""
