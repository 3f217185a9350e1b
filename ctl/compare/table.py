# SPDX-License-Identifier: Apache-2.0
"""The table of a comparison: a line a variant."""

MEGA = 1e6


def line_of(variant, result, run):
    """What the table says of a variant: {column: number}."""
    if run == "simulated":
        return {"variant": variant.name, "nodes": variant.nodes, "error": result["error"],
                "virtual_seconds": result["seconds"], "megabytes_sent": result["bytes_sent"] / MEGA}
    nodes = result["nodes"]
    losses = [node["test_loss"] for node in nodes if node["test_loss"] is not None]
    accuracies = [node["test_accuracy"] for node in nodes if node["test_accuracy"] is not None]
    return {"variant": variant.name, "nodes": variant.nodes,
            "accuracy_worst": min(accuracies, default=None), "accuracy_best": max(accuracies, default=None),
            "test_loss_worst": max(losses, default=None), "seconds": result["seconds"],
            "megabytes_sent": sum(node["bytes_sent"] for node in nodes) / len(nodes) / MEGA}


def print_table(lines):
    columns = list(lines[0])
    cells = [[column.replace("_", " ") for column in columns]]
    for line in lines:
        cells.append([value if isinstance(value, str) else "-" if value is None else str(value)
                      if isinstance(value, int) else f"{value:.4g}" for value in line.values()])
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
