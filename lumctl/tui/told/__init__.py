"""What is shown, as values and text: pure, without a widget, a thread or a store."""
