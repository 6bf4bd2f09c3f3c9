"""Time of frames while brushing: 200 pointer moves over the curves of a page, or of a made-up one with 32 × 32 heads × 300 moments.

Prints the work of animation frames (median, 95 %), the longest task and the size of the bundle. Budgets: 8 ms, 16 ms, 100 ms, 120 kB.
`python3 frames.py [page.html]`
"""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np
import synthetic
from playwright.sync_api import sync_playwright

BROWSER = os.environ.get("HEADSCOPE_BROWSER", "/usr/bin/chromium-headless-shell")

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


def report(name, page, wall=None):
    frames = np.array(page.evaluate("window.frames_ms.splice(0)"))
    tasks = page.evaluate("window.tasks_ms.splice(0)")
    if not len(frames):
        return print(f"{name:28s} no frame")
    print(f"{name:28s} frames {len(frames):4d}  median {np.median(frames):5.1f} ms  95 % {np.percentile(frames, 95):5.1f} ms  most {frames.max():5.1f} ms  "
          f"longest task {max(tasks, default=0):4.0f} ms")


def main():
    with tempfile.TemporaryDirectory() as folder:
        web = synthetic.bundle(folder)
        path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(folder) / "big.html"
        if len(sys.argv) < 2:
            synthetic.write(path, web=web, layers=32, heads=32, key_heads=8, moments=300, runs=1, study=False)
        print(f"bundle {len(web[0].encode()):,} bytes, style {len(web[1].encode()):,}; page {path.stat().st_size:,}")
        with sync_playwright() as player:
            browser = player.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.add_init_script(WATCH)
            page.goto(path.resolve().as_uri() + "#m=entropy")
            page.wait_for_selector('.view[data-view="map"]:not([data-field=""])')
            times = page.evaluate("(() => { const first = performance.getEntriesByName('first-contentful-paint')[0]; return [first ? first.startTime : null, performance.now()] })()")
            print(f"first paint {times[0] or 0:.0f} ms, metric shown after {times[1]:.0f} ms")
            page.wait_for_timeout(1500)
            report("load", page)
            canvas = page.locator('.view[data-view="curves"] canvas').last
            canvas.scroll_into_view_if_needed()
            page.wait_for_timeout(1500)
            report("scroll to the curves", page)
            box = canvas.bounding_box()
            x = lambda i: box["x"] + 80 + (box["width"] - 160) * (0.5 - 0.5 * np.cos(i / 200 * 6 * np.pi))
            y = box["y"] + box["height"] / 2
            page.mouse.move(x(0), y)
            page.mouse.down()
            for i in range(200):
                page.mouse.move(x(i), y)
            page.mouse.up()
            report("brush, 200 moves", page)
            page.set_viewport_size({"width": 1280, "height": 3200})      # map, scatter, table, curves, strips and roles in view
            page.evaluate("window.scrollTo(0, 0)")
            page.wait_for_timeout(1500)
            page.evaluate("window.frames_ms.splice(0)")
            page.evaluate("window.tasks_ms.splice(0)")
            tall = canvas.bounding_box()
            page.mouse.move(x(0), tall["y"] + 100)
            page.mouse.down()
            for i in range(200):
                page.mouse.move(x(i), tall["y"] + 100)
            page.mouse.up()
            report("brush, all views in sight", page)
            page.set_viewport_size({"width": 1280, "height": 900})
            canvas.scroll_into_view_if_needed()
            page.wait_for_timeout(800)
            box = canvas.bounding_box()
            page.evaluate("window.frames_ms.splice(0)")
            for i in range(200):
                page.mouse.move(x(i), box["y"] + 20 + (i * 7) % int(box["height"] - 60))
            report("hover curves, 200 moves", page)
            grid = page.locator('.view[data-view="map"] .map-frame canvas').last
            grid.scroll_into_view_if_needed()
            page.wait_for_timeout(500)
            report("back to the map", page)
            box = grid.bounding_box()
            for i in range(200):
                page.mouse.move(box["x"] + 40 + (i * 13) % (box["width"] - 60), box["y"] + 30 + (i * 5) % (box["height"] - 50))
            report("hover map, 200 moves", page)
            for _ in range(60):
                page.focus("#to")
                page.keyboard.press("ArrowLeft")
            report("slider, 60 steps", page)
            page.evaluate("window.scrollTo(0, document.querySelector('[data-view=curves]').offsetTop - 200)")
            page.wait_for_timeout(800)
            page.evaluate("window.frames_ms.splice(0)")
            for _ in range(4):
                page.keyboard.press("Escape")
                page.evaluate("document.activeElement.blur()")
                page.keyboard.press("]")
                page.wait_for_timeout(700)
            report("change of metric, 4 times", page)
            browser.close()


if __name__ == "__main__":
    main()
