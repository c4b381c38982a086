"""HammerDB 3 to 5: the result of each run of TPROC-C. X are new orders (NOPM) a second."""

from nummodel.records.readers._declared import Field, Tool
from nummodel.records.readers._reading import Column

USER = r'"?(?:Vuser [0-9]+:)?'
RESULT = rf"{USER}TEST RESULT : System achieved "
HAMMERDB = Tool(
    begins=(
        rf"{USER}Beginning rampup",
        rf"{USER}[0-9]+ Active Virtual Users configured",
        rf"{USER}TEST RESULT : ",
    ),
    known=rf"{USER}(?:TEST RESULT : |Beginning rampup|[0-9]+ Active Virtual Users configured)",
    fields=(
        Field("N", rf"{USER}([0-9]+) Active Virtual Users configured"),
        Field("X:/min transactions:/min", rf"{RESULT}([0-9]+) NOPM from ([0-9]+) .{{1,40}}TPM"),
        Field("transactions:/min X:/min", rf"{RESULT}([0-9]+) .{{1,40}}TPM at ([0-9]+) NOPM"),
    ),
    errors=r"Error in Virtual User|Vuser [0-9]+:FINISHED FAILED",
    needs={"X": "TEST RESULT"},
    own={"transactions": Column("1/s", "all transactions of the database (TPM)")},
    clients="virtual users",
)
recognises, parse = HAMMERDB.recognises, HAMMERDB.parse
