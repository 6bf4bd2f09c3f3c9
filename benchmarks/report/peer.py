"""One metric of all heads with Plotly: curves over moments and a heat map of the last one, in one HTML file.

usage: peer.py PAGE LAYERS HEADS MOMENTS
"""

import sys

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

page, (layers, heads, moments) = sys.argv[1], map(int, sys.argv[2:])
values = np.cumsum(np.random.default_rng(0).normal(scale=0.05, size=(layers * heads, moments)), axis=1)
figure = make_subplots(rows=2, cols=1)
figure.add_trace(go.Heatmap(z=values[:, -1].reshape(layers, heads)), row=1, col=1)
for head, curve in enumerate(values):
    figure.add_trace(go.Scatter(y=curve, mode="lines", name=f"L{head // heads}H{head % heads}", showlegend=False), row=2, col=1)
figure.write_html(page, include_plotlyjs=True)
