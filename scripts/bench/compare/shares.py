"""A step's share of the machine's matrix-product rate, where its time goes, and its bound."""
import json
import statistics

from compare.harness import fail, matmul_rate, progress, spread

STEP_GOALS = {("minilm", "fp32"): 80, ("base", "fp32"): 85}  # percent of the matrix-product rate
PRODUCT_GOALS = {"bf16": 50}  # percent of the peak of bf16 multiplications that the products alone must reach
PRECISIONS = ("fp32", "bf16")
SHOWN = 8  # operations in the table
COUNTED = 0.01  # only operations with this share of a step may set the machine's highest memory rate


def check(options, _works):
    if options.share_steps < 0:
        fail("--share-steps: not negative")


def run(bench, work, precision):
    arguments = ["bench", "step", "--shape", work.model, "--lengths", work.kind, "--batch-size", work.batch_size,
                 "--precision", precision, "--json", *bench.threads()]
    if bench.options.share_steps:
        arguments += ["--steps", bench.options.share_steps]
    return {**analysis(result := json.loads(bench.ours(arguments).output)), **result}


def analysis(result):
    """Returns shares in percent, and a lower bound of a step's seconds: its arithmetic at the measured rate of matrix
    products, plus the bytes of all other operations at the best measured rate of memory."""
    ops, peak = result["ops"], matmul_rate(result)
    products = [op for op in ops if op["op"].startswith("linear")]
    product_flops = sum(op["seconds"] * op["flops_per_second"] for op in products)
    flops = sum(op["seconds"] * op["flops_per_second"] for op in ops)
    moved = sum(op["seconds"] * op["bytes_per_second"] for op in ops if op["flops_per_second"] == 0)
    memory = max([result["memory_peak_bytes_per_second"],
                  *(op["bytes_per_second"] for op in ops if op["share"] >= COUNTED)])
    step = result["batch_size"] / result["samples_per_second"]
    arithmetic, moving = flops / peak, moved / memory
    return {"step_share": 100 * result["share_of_matmul_peak"],
            "product_share": 100 * product_flops / sum(op["seconds"] for op in products) / peak,
            "product_time": 100 * sum(op["seconds"] for op in products) / step,
            "arithmetic": arithmetic, "moving": moving, "memory": memory, "peak": peak,
            "step": step, "bound": arithmetic + moving, "bound_share": 100 * (arithmetic + moving) / step}


def measure(bench, works):
    options, results = bench.options, []
    for work in works:
        runs = {precision: [] for precision in PRECISIONS}
        for number in range(options.runs):
            for precision in PRECISIONS:
                result = run(bench, work, precision)
                runs[precision].append(result)
                progress(f"shares {work.name} run {number + 1}/{options.runs} {precision}: "
                         f"{result['step_share']:.1f} % of the rate, products {result['product_share']:.1f} %, "
                         f"bound {result['bound_share']:.1f} % of the step")
        results += [(work, precision, runs[precision]) for precision in PRECISIONS]
    return bench.section("Shares of the machine's rates", [
        f"{options.runs} runs of `finetune bench step` for each work and precision, in turn; random samples with the "
        "lengths of bank text and of SQuAD's windows; figures are min / median / max",
        "The rate is that of products of 2048 x 2048 matrices with all threads, some after each 0.4 s of steps; in "
        "bf16 the peak of multiplications in registers alone, which no product reaches. Products: the linear layers' "
        "alone, in the time they take",
        "Bound: the arithmetic of products and attention at the measured rate, then the bytes of all other operations "
        "at the highest rate that memory or an operation of at least 1 % of the step reached in the run. It assumes "
        "that nothing overlaps and that every such operation moves its operands through memory, though some stay in "
        "cache; a product faster than the measured one can beat it"],
        "", {"shares": table(results), "bounds": bounds_table(results), "operations": operations_table(results)})


def columns(runs, key, digits=1, scale=1):
    return spread([scale * run[key] for run in runs], digits)


def goal_text(goal):
    return f"≥ {goal}" if goal else ""


def table(results):
    lines = ["| work | precision | whole step, % of the rate | goal | products, % of the rate | goal "
             "| products, % of the step | samples/s | the rate, GFLOP/s |", "|---|---|---|---|---|---|---|---|---|"]
    for work, precision, runs in results:
        lines.append(f"| {work.title} | {precision} | {columns(runs, 'step_share')} "
                     f"| {goal_text(STEP_GOALS.get((work.model, precision)))} | {columns(runs, 'product_share')} "
                     f"| {goal_text(PRODUCT_GOALS.get(precision))} | {columns(runs, 'product_time')} "
                     f"| {columns(runs, 'samples_per_second', 2)} | {columns(runs, 'peak', 0, 1e-9)} |")
    return lines


def bounds_table(results):
    lines = ["| work | precision | arithmetic, ms | moving, ms (GB/s) | bound, ms | step, ms | bound by step, % |",
             "|---|---|---|---|---|---|---|"]
    for work, precision, runs in results:
        run = median_run(runs)
        lines.append(f"| {work.title} | {precision} | {1e3 * run['arithmetic']:.1f} | {1e3 * run['moving']:.1f} "
                     f"({run['memory'] / 1e9:.1f}) | {1e3 * run['bound']:.1f} | {1e3 * run['step']:.1f} "
                     f"| {columns(runs, 'bound_share')} |")
    return lines


def operations_table(results):
    """Makes a table of the operations that take the most time in the median run."""
    lines = ["| work | precision | operation | share of the step, % | GFLOP/s | GB/s |", "|---|---|---|---|---|---|"]
    for work, precision, runs in results:
        for op in sorted(median_run(runs)["ops"], key=lambda op: -op["seconds"])[:SHOWN]:
            name = op["op"] if op["phase"] != "update" else f"{op['op']} (update)"
            rates = f"{op['flops_per_second'] / 1e9:,.0f} |" if op["flops_per_second"] else \
                f"| {op['bytes_per_second'] / 1e9:.1f}"
            lines.append(f"| {work.title} | {precision} | {name} | {100 * op['share']:.1f} | {rates} |")
    return lines


def median_run(runs):
    middle = statistics.median_low([run["step"] for run in runs])
    return next(run for run in runs if run["step"] == middle)
