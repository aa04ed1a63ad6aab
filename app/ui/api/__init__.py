"""APIs for other programs: OpenAI's, A1111's and Gradio's client."""
