"""How a picture is painted with diffusers: families, schedulers, loading, steps, previews, prompt weights, pictures in and out."""
