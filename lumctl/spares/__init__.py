"""The spares of a rack. For authors of sharing policies: the question, the answer, and how a demand is served whole."""

from lumctl.spares.sharing import Answer, Demand, FreeSpare, SharingPolicy, SharingQuestion, serve, tightest_first

__all__ = ["Answer", "Demand", "FreeSpare", "SharingPolicy", "SharingQuestion", "serve", "tightest_first"]
