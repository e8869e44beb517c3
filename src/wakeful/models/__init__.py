"""The only code that reaches a model: chat models, embedders, and the catalogue of what models hold and cost.

| module | owns |
|---|---|
| ``chat`` | the ``ChatModel`` protocol, functions as models, what all kinds share |
| ``choose`` | ``coerce_model``: a model of what the user has |
| ``anthropic``, ``openai``, ``langchain``, ``local`` | one kind of model each; its SDK is imported when first used |
| ``sdk`` | what the adapters of provider SDKs share |
| ``retry`` | what a provider's error means, and when to try again |
| ``catalog`` | windows, output limits and prices |
| ``embed`` | embedders |
"""
