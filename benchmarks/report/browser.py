"""What a browser takes to show a report, and a page of the peer."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

BROWSER = os.environ.get("HEADSCOPE_BROWSER", "/usr/bin/chromium-headless-shell")
MOVES = 200

# Sums the time of the callbacks of each animation frame, and keeps the long tasks.
WATCH = """
window.frames_ms = []; window.tasks_ms = [];
{
  const ask = window.requestAnimationFrame.bind(window);
  let now = -1;
  window.requestAnimationFrame = (call) => ask((time) => {
    const start = performance.now();
    call(time);
    const spent = performance.now() - start;
    if (time === now) window.frames_ms[window.frames_ms.length - 1] += spent;
    else window.frames_ms.push(spent);
    now = time;
  });
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.tasks_ms.push(entry.duration))).observe({type: 'longtask', buffered: true});
}
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()"


class Watch:
    def __enter__(self) -> Watch:
        self.player = sync_playwright().start()
        self.browser = self.player.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        return self

    def __exit__(self, *_: object) -> None:
        self.browser.close()
        self.player.stop()

    @staticmethod
    def code(text: bytes) -> list[bytes]:
        """The style and the script of a report."""
        return re.findall(rb"<style>(.*?)</style>", text, re.S) + re.findall(rb"<script>(.*?)</script>", text, re.S)

    def page(self, path: Path) -> dict[str, float]:
        page = self.browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(WATCH)
        page.goto(path.resolve().as_uri() + "#m=entropy")
        page.wait_for_selector('.view[data-view="map"]:not([data-field=""])')
        shown = page.evaluate("performance.now()")
        found = {"first paint s": page.evaluate(PAINT) / 1e3, "metric shown s": shown / 1e3}
        page.wait_for_timeout(1000)
        curves = page.locator('.view[data-view="curves"] canvas').last
        page.set_viewport_size({"width": 1280, "height": 3200})  # map, scatter, table, curves, strips and roles in sight
        page.evaluate("window.scrollTo(0, document.querySelector('#heads').offsetTop)")
        page.wait_for_timeout(1500)
        clear(page)
        box = curves.bounding_box()
        places = box["x"] + 80 + (box["width"] - 160) * (0.5 - 0.5 * np.cos(np.arange(MOVES) / MOVES * 6 * np.pi))
        page.mouse.move(places[0], box["y"] + 100)
        page.mouse.down()
        for x in places:
            page.mouse.move(x, box["y"] + 100)
        page.mouse.up()
        frames, tasks = clear(page)
        found |= {"frame ms, median": np.median(frames), "frame ms, 95 %": np.percentile(frames, 95), "longest task ms": max(tasks, default=0)}
        page.set_viewport_size({"width": 1280, "height": 900})
        page.keyboard.press("Escape")
        curves.scroll_into_view_if_needed()
        page.wait_for_timeout(1000)
        changes = []
        for _ in range(4):
            clear(page)
            page.evaluate("document.activeElement.blur()")
            page.keyboard.press("]")
            page.wait_for_timeout(700)
            changes.append(max(map(max, filter(None, clear(page))), default=0))  # the longest frame or task
        page.close()
        return found | {"change of metric ms": float(np.median(changes))}

    def peer(self, path: Path) -> dict[str, float]:
        """The same of a page of Plotly. A brush is a new range of the axis, a change of metric new values of all curves."""
        page = self.browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.resolve().as_uri())
        page.wait_for_selector(".lines path.js-line")
        found = {"first paint s": page.evaluate(PAINT) / 1e3, "metric shown s": page.evaluate("performance.now()") / 1e3}
        moves = page.evaluate("""async () => {
          const plot = document.querySelector('.js-plotly-plot'), times = [];
          for (let i = 0; i < 10; ++i) {
            const start = performance.now();
            await Plotly.relayout(plot, {'xaxis2.range': [i, 100 + i]});
            times.push(performance.now() - start);
          }
          return times;
        }""")
        change = page.evaluate("""async () => {
          const plot = document.querySelector('.js-plotly-plot');
          const curves = plot._fullData.slice(1).map((trace) => Array.from(trace.y, (y) => 1 - y));
          const start = performance.now();
          await Plotly.restyle(plot, {y: curves}, curves.map((_, i) => i + 1));
          return performance.now() - start;
        }""")
        page.close()
        return found | {"frame ms, median": np.median(moves), "frame ms, 95 %": np.percentile(moves, 95), "change of metric ms": change}


def clear(page: object) -> tuple[list[float], list[float]]:
    """What was watched since the last time."""
    return page.evaluate("[window.frames_ms.splice(0), window.tasks_ms.splice(0)]")
