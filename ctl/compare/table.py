# SPDX-License-Identifier: Apache-2.0
"""The table of a comparison: a line a variant."""

MEGA = 1e6


def line_of(variant, result, plan):
    """What the table says of a variant: {column: number}."""
    if plan.run == "simulated":
        line = {"variant": variant.name, "nodes": variant.nodes, "error": result["error"],
                "virtual_seconds": result["seconds"], "megabytes_sent": result["bytes_sent"] / MEGA}
    else:
        nodes = result["nodes"]
        losses = [node["test_loss"] for node in nodes if node["test_loss"] is not None]
        accuracies = [node["test_accuracy"] for node in nodes if node["test_accuracy"] is not None]
        line = {"variant": variant.name, "nodes": variant.nodes,
                "accuracy_worst": min(accuracies, default=None), "accuracy_best": max(accuracies, default=None),
                "test_loss_worst": max(losses, default=None), "seconds": result["seconds"],
                "megabytes_sent": sum(node["bytes_sent"] for node in nodes) / len(nodes) / MEGA}
    if plan.goal is not None:
        line["seconds_to_goal"], line["megabytes_to_goal"] = cost_of_goal(variant, result, plan)
    return line


def cost_of_goal(variant, result, plan):
    """Seconds, and megabytes that a node has sent, when the last node gets there; (None, None) if one does not."""
    if plan.run == "simulated":
        for _, seconds, sent, error, _ in result["rounds"]:
            if error is not None and error <= plan.goal:
                return seconds, sent / variant.nodes / MEGA
        return None, None
    firsts = [next(((seconds, sent) for _, seconds, sent, _, _, accuracy in node["history"]
                    if accuracy is not None and accuracy >= plan.goal), None) for node in result["nodes"]]
    if None in firsts:
        return None, None
    return max(first[0] for first in firsts), sum(first[1] or 0 for first in firsts) / len(firsts) / MEGA


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
