"""Headers of tables: what each column is known as, or the options that say what it is."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest
from inprocess import nummodel

from nummodel.errors import InputError
from nummodel.records import columns

CASES = Path(__file__).parent / "cases"


def write(tmp_path, header):
    """A table in which the cells of all columns are the same."""
    width = len(next(csv.reader([header])))
    rows = "".join(",".join([cell] * width) + "\n" for cell in ("11", "20", "37", "60"))
    path = tmp_path / "my table.csv"
    path.write_text(f"{header}\n{rows}", encoding="utf-8")
    return path


def found(points):
    return sorted(f"{quantity}={name}" for quantity, (name, _) in points.found.items())


@pytest.mark.parametrize(
    "header, expected",
    [
        ("when,threads,tps", "N=threads X=tps"),
        ("clients,latency_avg_ms,rps", "N=clients X=rps R=latency_avg_ms"),
        ("run_id,clients,requests/s", "N=clients X=requests/s"),
        ("throughput_(MB/s),N,p95", "N=N X=throughput_(MB/s)"),
        (",numThreads,ops_per_s", "N=numThreads X=ops_per_s"),
        ("nodes,N,X_per_s", "N=N X=X_per_s"),
        ("users,p99,requests_s", "N=users X=requests_s"),
        ("cores,speed,error_rate", "N=cores X=speed"),
        ("workers,tps_stddev,tps", "N=workers X=tps"),
        ("tps,threads,elapsed", "N=threads X=tps"),
        ("x_position,threads,tps", "N=threads X=tps"),
        ("time_for_1_GB_(s),threads,ops/µs", "N=threads X=ops/µs"),
        ("run,x,y", "N=x X=y"),
        ("concurrent-requests,p99,rps", "N=concurrent-requests X=rps"),
        ("streams,QphH,wall_s", "N=streams X=QphH"),
        ("threads,90%_Line,Requests/sec", "N=threads X=Requests/sec"),
        ("bogo_ops,instances,bogo_ops/s,real_time_(secs)", "N=instances X=bogo_ops/s"),
        ("scale,clients,tps_(without_connections)", "N=clients X=tps_(without_connections)"),
        ("keys,threads,throughput_(err<1%)", "N=threads X=throughput_(err<1%)"),
        ("tps_max,threads,tps_avg,tps_min", "N=threads X=tps_avg"),
        ("Hits/sec,clients,Ops/sec,Misses/sec", "N=clients X=Ops/sec"),
        ("host,threads,jobs/hr", "N=threads X=jobs/hr"),
        ("threads,host,Mpps", "N=threads X=Mpps"),
        ("procs,speedup,time_seconds", "N=procs X=speedup"),
        ("threads,tps,disk-%util", "N=threads X=tps U_disk=disk-%util"),
        ("threads,tps,sda_util", "N=threads X=tps U_sda=sda_util"),
        ("threads,tps,nvme0n1_%util", "N=threads X=tps U_nvme0n1=nvme0n1_%util"),
        ("threads,tps,CPU_%", "N=threads X=tps U_cpu=CPU_%"),
        ("threads,tps,cpuUsage", "N=threads X=tps U_cpu=cpuUsage"),
        ("threads,tps,Processor-busy", "N=threads X=tps U_cpu=Processor-busy"),
        ("threads,tps,%_CPU_load", "N=threads X=tps U_cpu=%_CPU_load"),
        ("threads,tps,avg_cpu_use_[percent]", "N=threads X=tps U_cpu=avg_cpu_use_[percent]"),
        ("threads,tps,%idle", "N=threads X=tps U_cpu=%idle"),
        ("threads,tps,disk_idle_(%)", "N=threads X=tps U_disk=disk_idle_(%)"),
        ("threads,tps,U_net_pct", "N=threads X=tps U_net=U_net_pct"),
        ("threads,tps,avgLatencyMs", "N=threads X=tps R=avgLatencyMs"),
        ("threads,tps,Avg.response.time(ms)", "N=threads X=tps R=Avg.response.time(ms)"),
        ("threads,tps,mean_us", "N=threads X=tps R=mean_us"),
        ("threads,tps,p99_(ms)", "N=threads X=tps"),
        ("threads,tps,tps-stderr", "N=threads X=tps"),
        ("threads,tps,think-time_(s)", "N=threads X=tps Z=think-time_(s)"),
        ("achieved_rps,offered_rps,p99", "N=offered_rps X=achieved_rps"),
        ("target_tps,tps,latency_ms", "N=target_tps X=tps R=latency_ms"),
        ("rate,throughput,mean_ms", "N=rate X=throughput R=mean_ms"),
        ("lamda,X,R", "N=lamda X=X R=R"),
        ("threads,n_total,tps,sd", "N=threads X=tps"),
    ],
)
def test_columns_are_known_by_their_names(tmp_path, header, expected):
    """Wherever they stand. A blank in a name counts as little as another sign."""
    assert found(columns.read(write(tmp_path, header))) == sorted(expected.split())
    if not re.search("[XU]_", header):
        blank = columns.read(write(tmp_path, header.replace("_", " ")))
        assert {text.replace(" ", "_") for text in found(blank)} == {*expected.split()}


@pytest.mark.parametrize(
    "header, doubt, options",
    [
        ("threads,tps,qps", "tps, qps may be the throughput", "N=threads X=tps"),
        ("threads,nodes,tps", "threads, nodes may be the load", "N=threads X=tps"),
        ("threads,N,tps,sd", "threads, N may be the load", "N=threads X=tps"),
        ("jobs,mb_s,iops", "mb_s, iops may be the throughput", "N=jobs X=mb_s"),
        ("size,depth,width", "known as the load, no column is known", "N=size X=depth"),
        ("date,input,output", "known as the load, no column is known", "N=input X=output"),
        ("run,when,tps", "no column is known as the load", "lamda=tps X=COLUMN"),
        ("rps,latency_ms,cpu_pct", "or the rate that a generator set", "lamda=rps X=COLUMN"),
        ("cpu,tps,latency_ms", "no column is known as the load", "N=cpu X=tps"),
        ("threads,rate,run", "no column is known as the throughput", "N=threads X=rate"),
        ("threads,foo,run", "no column is known as the throughput", "N=threads X=foo"),
        ("threads,requests,p99", "no column is known as the throughput", "N=threads X=requests"),
        ("threads,ops,time_s", "as the throughput", "N=threads X=ops/time_s"),
        ("w,clients,commits,elapsed", "as the throughput", "N=clients X=commits/elapsed"),
        ("n_procs,n_threads,time_taken", "may be the load", "N=n_procs X=1/time_taken"),
        ("MPI,FOM,Time(s)", "--use 'X=1/Time(s)' is right if all runs did", "N=MPI X=FOM"),
        ("mode,p,N_total,time_sec", "--use X=1/time_sec is right if", "N=mode X=p"),
        ("user,real,sys", "as the throughput", "N=user X=sys"),
        ("threads,wait_ms,U_cpu", "as the throughput", "N=threads X=COLUMN"),
        ("threads,speed_(ms),hit_%", "as the throughput", "N=threads X=COLUMN"),
        ("threads,Average,p90", "as the throughput", "N=threads X=Average"),
        ("Durchsatz,Klienten", "no column is known as the throughput", "N=Durchsatz X=Klienten"),
    ],
)
def test_other_columns_are_refused_with_the_options_that_name_them(
    tmp_path, header, doubt, options
):
    """No run, time or share is proposed as load or throughput."""
    path = write(tmp_path, header)
    refused = nummodel("fit", path)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert doubt in refused.stderr
    command = re.search(r"as in: nummodel (.*?) \(in a report: -p (.*?)\)", refused.stderr)
    fit, file, *words = shlex.split(command[1])
    assert [fit, file] == ["fit", str(path)]
    assert words == [w for option in options.split() for w in ("--use", option)]
    assert shlex.split(command[2]) == [f"use={','.join(options.split())}"]
    if "COLUMN" not in options:
        points = columns.read(path, use=",".join(options.split()))
        assert {*options.replace("lamda", "N").split()} <= {*found(points)}


def test_no_column_of_texts_or_of_one_value_is_proposed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,fixed,threads,done\na,7,1,10\nb,7,2,19\nc,7,4,33\n")
    with pytest.raises(InputError, match="--use N=threads --use X=done "):
        columns.read(path)
    told = columns.read(path, use="X=done").warnings
    assert told == () and columns.read(path, use=["X=done"]).x == "threads"


@pytest.mark.parametrize(
    "name, told",
    [
        ("p95_ms", "not used: p95_ms (R_p95); a fit takes means, and no errors of them"),
        ("tps_stderr", "not used: tps_stderr (X_se); a fit takes means, and no errors of them"),
        ("S-Avg", "not used: S-Avg; if S-Avg is a mean response time, --use 'R[ms]=S-Avg'"),
        ("wait_ms", "not used: wait_ms; if wait_ms is a mean response time, --use R=wait_ms"),
        ("dsk %", "not used: dsk %; if dsk % is the use of a station, --use 'U_NAME=dsk %'"),
    ],
)
def test_what_is_not_used_is_named_with_the_option_that_would_use_it(tmp_path, name, told):
    path = write(tmp_path, f"threads,tps,{name}")
    assert columns.read(path).warnings == (told,)
    if option := re.search("--use (.*)", told):
        use = shlex.split(option[1])[0].replace("NAME", "dsk")
        assert columns.read(path, use=use).warnings == ()


def test_use_says_what_columns_hold(tmp_path):
    path = write(tmp_path, "a,b,c,tps,e,idle time,g")
    use = ["N=a", "R[ms]=b", "U_disk[%]=c", "X[/min]=tps", "c_disk=e"]
    points = columns.read(path, use=use)
    assert points.N.tolist() == [11, 20, 37, 60] and points.seconds
    assert points.others["R"].tolist() == pytest.approx([0.011, 0.02, 0.037, 0.06])
    assert points.others["U_disk"].tolist() == pytest.approx([0.11, 0.2, 0.37, 0.6])
    assert points.X.tolist() == pytest.approx([11 / 60, 20 / 60, 37 / 60, 1])
    assert points.found["X"] == ("tps", pytest.approx(1 / 60))
    assert columns.read(path, use=", ".join(use)).found == points.found


def test_a_column_may_be_computed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("threads;work;time_ms;free %\n1;100;50;75\n2;100;25;50,5\n")
    points = columns.read(path, use=["X=work/time_ms", "U_cpu=1-free %"])
    assert points.X.tolist() == pytest.approx([2000, 4000]) and points.y == "work/time_ms"
    assert points.others["U_cpu"].tolist() == pytest.approx([0.25, 0.495])
    assert columns.read(path, use="X=1/time_ms").X.tolist() == pytest.approx([20, 40])


@pytest.mark.parametrize(
    "option, why",
    [
        ("Y=tps", "expected N, X, R, Z, U_NAME, c_NAME or run and the name of a column"),
        ("X", "no column ''"),
        ("X=speed", "no column 'speed', expected one of: threads, tps, foo"),
        ("X=1/speed", "no column '1/speed'"),
        ("R[%]=foo", "no unit of R"),
        ("N[s]=foo", "no unit of N"),
        ("X=foo,X=tps", "X is 'foo' and 'tps', expected one"),
    ],
)
def test_what_use_cannot_say_is_refused(tmp_path, option, why):
    done = nummodel("fit", write(tmp_path, "threads,tps,foo"), "--use", option)
    assert done.returncode == 2 and why in done.stderr


MODES = "mode,size,threads,tps\n" + "".join(
    f"{mode},{size},{n},{n * k}\n"
    for mode, size, k in (("a b", 1, 10), ("a b", 2, 11), ("c", 1, 20), ("c", 2, 21))
    for n in (1, 2, 4, 8)
)


def test_rows_of_several_systems_are_refused_with_the_option_that_picks_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(MODES)
    with pytest.raises(InputError, match=r"different mode \(a b, c\).* --only 'mode=a b' "):
        columns.read(path)
    picked = columns.read(path, only="mode=c")
    assert picked.X.tolist() == [20, 40, 80, 160, 21, 42, 84, 168]
    assert picked.warnings[0].endswith("if these are configurations, pick one: --only size=1")
    assert columns.read(path, only=["mode=c", "size=2"]).warnings == ()
    assert columns.read(path, use="run=mode", only="size=2").run.tolist() == 4 * [0] + 4 * [1]
    with pytest.raises(InputError, match="--only mode=d: no row, expected one of: a b, c"):
        columns.read(path, only="mode=d")
    with pytest.raises(InputError, match="no column 'mood'"):
        columns.read(path, only="mood=c")
    path.write_text(MODES.replace("size", "processes"))
    with pytest.raises(InputError, match="--only 'mode=a b' --only processes=1 "):
        columns.read(path, "threads")


def fitted(name, *options, table="t.csv"):
    done = nummodel("fit", CASES / name / table, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name, options, x, y, n",
    [
        ("30-walrus-threads", [], "threads", "throughput", 10),
        ("32-workers-time-speedup", [], "workers", "speedup", 4),
        ("33-procs-threads-time", ["N=n_threads", "n_procs=2"], "n_threads", "1/time_taken", 4),
        ("35-mpi-strong-weak", ["N=p", "mode=strong"], "p", "N_total/time_sec", 6),
        ("36-mpi-fom", [], "MPI", "1/Time(s)", 7),
        ("37-curp-threads", [], "Threads", "Throughput", 7),
        ("39-asyncio-modes", ["", "Mode=mt_asyncio async"], "Threads", "Throughput (10KB)", 4),
        ("60-usl4j-superlinear", [], "workers", "req_per_s", 6),
    ],
)
def test_tables_of_others(name, options, x, y, n):
    """As they are, or with the options that the refusal of the table says."""
    words = [f"--use=X={y}"] * ("/" in y) + [f"--use={use}" for use in options[:1] if use]
    words += [f"--only={only}" for only in options[1:]]
    words += ["--only=N_total=65536"] * (x == "p")
    got = fitted(name, *words)
    assert (got["x"], got["y"], got["n"]) == (x, y, n)
    if words:
        refused = nummodel("fit", CASES / name / "t.csv").stderr
        assert re.search(r"--use '?X=1/|--only 'Mode=", refused)


def test_tables_of_others_in_markdown_and_without_a_header():
    name = "37-curp-threads"
    assert fitted(name, table="table.md") == fitted(name)
    done = nummodel("fit", CASES / "54-percona-summary" / "summary.csv")
    assert done.returncode == 2 and "10 among the names, expected a header" in done.stderr


def test_the_list_has_each_name_once():
    """So that no name means two things: but counts, which are rates where they have a unit."""
    names = [
        (re.sub(r"[\W_]", "", name), row.unit.rstrip("?"))
        for row in columns.listed()
        for name in row.names.split(", ")
    ]
    assert len({*names}) == len(names)
    said = nummodel("list", "columns").stdout
    assert all(name in said for row in columns.listed() for name in row.names.split(", "))


def test_the_list_is_printed_in_lines_that_a_terminal_shows():
    """Which break between names."""
    said = nummodel("list", "columns").stdout
    assert max(map(len, said.splitlines())) <= 100
    for row in columns.listed():
        assert f"{row.meaning}: {row.names}" in re.sub(r"\s+", " ", said)
