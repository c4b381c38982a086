"""What is documented: published tables with their cards, tables of one's own, and claims."""

from nummodel._faces import face

__getattr__, __dir__ = face(__name__, "claims columns contended data folder readers")
