"""What other programs call: the shapes of OpenAI, A1111 and Gradio's client."""
