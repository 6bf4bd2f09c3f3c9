"""The page of a report in a browser: what it shows, how it is used, what it never does.

Needs playwright, axe-playwright-python and numpy; HEADSCOPE_BROWSER names a Chromium if it is not /usr/bin/chromium-headless-shell.
The argument is the program: class Written looks at pages that it writes.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np
import synthetic

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() if __name__ == "__main__" and len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
BROWSER = os.environ.get("HEADSCOPE_BROWSER", "/usr/bin/chromium-headless-shell")
# Rounding of a ramp of 1,024 colours, and of the page's 12 bits: a share of 1/4094 moves a colour by less than one.
TOLERANCE = 2


def setUpModule():
    if sync_playwright is None or not pathlib.Path(BROWSER).exists():
        raise unittest.SkipTest("playwright or a browser is missing (HEADSCOPE_BROWSER)")
    global folder, player, browser, pages, web
    folder = tempfile.TemporaryDirectory()
    with tempfile.TemporaryDirectory() as out:
        web = synthetic.bundle(out)
    pages = {}
    player = sync_playwright().start()
    browser = player.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])


def tearDownModule():
    browser.close()
    player.stop()
    folder.cleanup()


def made(name, **options):
    """A page written once: its address, index and true values."""
    if name not in pages:
        path = pathlib.Path(folder.name) / f"{name}.html"
        pages[name] = (path.as_uri(), *synthetic.write(path, web=web, **options))
    return pages[name]


def ramp(stops, share):
    colours = np.array([[int(stop[i:i + 2], 16) for i in (1, 3, 5)] for stop in stops], float)
    at = np.clip(share, 0, 1) * (len(stops) - 1)
    return np.array([np.interp(at, range(len(stops)), colours[:, i]) for i in range(3)])


# Colours of the map's cells, near their upper left corner, where no letter is. [layer][cell] of `columns` cells.
CELLS = """([canvas, layers, heads, columns]) => {
  const ratio = canvas.width / parseFloat(canvas.style.width), c = canvas.getContext('2d');
  const wide = (parseFloat(canvas.style.width) - 38) / columns, high = (parseFloat(canvas.style.height) - 24) / layers, rows = [];
  for (let layer = 0; layer < layers; ++layer) for (let head = 0; head < columns; ++head) {
    const x = Math.round((34 + head * wide + 3) * ratio), y = Math.round((20 + layer * high + 3) * ratio);
    rows.push(Array.from(c.getImageData(x, y, 1, 1).data.slice(0, 3)));
  }
  return rows;
}"""


# Keeps the texts that canvases show, with their boxes; then those that are cut or cover another.
TEXTS = """{ const kind = CanvasRenderingContext2D.prototype, { fillText, clearRect } = kind; window.texts = new Map();
  kind.clearRect = function (...box) { texts.set(this.canvas, []); clearRect.apply(this, box); };
  kind.fillText = function (text, x, y) {
    const wide = this.measureText(text).width, high = 0.4 * parseFloat(this.font.match(/([\\d.]+)px/)[1]);
    const left = { center: x - wide / 2, right: x - wide }[this.textAlign] ?? x;
    if (text.trim() && Math.abs(this.getTransform().b) < 1e-9) texts.get(this.canvas)?.push({ text, left, right: left + wide, top: y - high, bottom: y + high });
    fillText.call(this, text, x, y); }; }"""
COVERED = """() => { const found = []; let many = 0;
  for (const [canvas, list] of texts) if (canvas.isConnected) list.forEach((a, i) => { ++many;
    if (a.left < -1 || a.top < -1 || a.right > parseFloat(canvas.style.width) + 1 || a.bottom > parseFloat(canvas.style.height) + 1) found.push(`${a.text} is cut`);
    for (const b of list.slice(0, i)) if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) found.push(`${a.text} covers ${b.text}`); });
  return [many, found]; }"""


def violations(page):
    from axe_playwright_python.sync_playwright import Axe
    return [(one["id"], [node["html"][:120] + " | " + node.get("failureSummary", "")[:200] for node in one["nodes"][:3]])
            for one in Axe().run(page).response["violations"]]


def contrast(a, b):
    """WCAG's contrast of two colours as the browser writes them: rgb(r, g, b)."""
    def luminance(text):
        share = np.array([int(x) / 255 for x in text[text.index("(") + 1:-1].split(",")[:3]])
        return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
    x, y = luminance(a), luminance(b)
    return (max(x, y) + 0.05) / (min(x, y) + 0.05)


def paper(pdf):
    """The pages of a PDF at 60 dpi: [row][column][red, green, blue]."""
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["pdftoppm", "-r", "60", "-", f"{out}/page"], input=pdf, check=True)
        pages = []
        for path in sorted(pathlib.Path(out).iterdir()):
            kind, size, depth, data = path.read_bytes().split(b"\n", 3)
            width, height = map(int, size.split())
            pages.append(np.frombuffer(data, np.uint8).reshape(height, width, 3))
        return pages


class PageTest(unittest.TestCase):
    def open(self, name="small", fragment="", width=1280, height=900, scheme="light", script=True, bypass=False, **options):
        address, self.index, self.truth = made(name, **options)
        page = self.page_of(width, height, scheme, script, bypass)
        page.goto(address + fragment)
        if script:
            page.wait_for_selector("html[data-ready]")
            if self.index["runs"]:
                page.wait_for_selector('.view[data-view="map"]:not([data-field=""])')
        return page

    def page_of(self, width=1280, height=900, scheme="light", script=True, bypass=False):
        """An empty page that keeps messages and requests."""
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, java_script_enabled=script,
                                           bypass_csp=bypass, offline=True, reduced_motion="reduce")
        self.addCleanup(self.context.close)
        page = self.context.new_page()
        self.messages, self.requests = [], []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.messages.append(dialog.message))
        self.page = page
        return page

    def settle(self):
        """Two frames: the store tells its views in the first, they draw in the second or before."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done()))))")

    def cells(self, columns):
        self.page.locator('.view[data-view="map"]').scroll_into_view_if_needed()
        self.settle()
        canvas = self.page.query_selector('.view[data-view="map"] .map-frame canvas[aria-hidden]')
        run = self.index["runs"][0]
        return np.array(self.page.evaluate(CELLS, [canvas, run["layers"], run["heads"]["q"], columns]))

    def run_name(self, i=0):
        return self.index["runs"][i]["name"]

    def expect_cells(self, values, diverging=False, log=False):
        heads = len(values) // self.index["runs"][0]["layers"]
        theme = self.index["themes"]["light"]
        if diverging:
            most = np.nanmax(np.abs(values))
            expected = ramp(theme["diverging"], values / (2 * most) + 0.5)
        else:
            v = np.log(values) if log else values
            expected = ramp(theme["sequential"], (v - v.min()) / (v.max() - v.min()))
        np.testing.assert_allclose(self.cells(heads), expected.T, atol=TOLERANCE)


class Map(PageTest):
    def test_Colours_EqualThoseComputedFromTheTable(self):
        self.open(fragment="#m=entropy")
        self.expect_cells(self.truth[(self.run_name(), "entropy")][:, -1])

    def test_KeyMetric_HasCellsAsWideAsItsQueryHeads(self):
        self.open(fragment="#m=k_norm")
        self.expect_cells(self.truth[(self.run_name(), "k_norm")][:, -1])

    def test_LogScale_IsUsedWhereTheSeriesIsLogarithmic(self):
        self.open(fragment="#m=sink")
        series = next(s for s in self.index["runs"][0]["sources"][0]["series"] if s["metric"] == "sink")
        self.assertEqual(series["scale"], "log")
        self.expect_cells(self.truth[(self.run_name(), "sink")][:, -1], log=True)

    def test_MinusLayerMean_IsDiverging(self):
        self.open(fragment="#m=entropy&c=layer")
        values = self.truth[(self.run_name(), "entropy")][:, -1].reshape(4, 4)
        self.expect_cells((values - values.mean(axis=1, keepdims=True)).ravel(), diverging=True)

    def test_MinusOtherRun_IsTheDifference(self):
        self.open(fragment="#m=entropy&c=run")
        self.page.wait_for_timeout(200)
        self.expect_cells(self.truth[(self.run_name(0), "entropy")][:, -1] - self.truth[(self.run_name(1), "entropy")][:, -1], diverging=True)

    def test_ChangeOverTheSteps_IsLastMinusFirst(self):
        self.open(fragment="#m=entropy&c=change&s=100-300")
        step = np.array(self.index["runs"][0]["sources"][0]["step"])
        inside = np.flatnonzero((step >= 100) & (step <= 300))
        values = self.truth[(self.run_name(), "entropy")]
        self.expect_cells(values[:, inside[-1]] - values[:, inside[0]], diverging=True)

    def test_Steps_AreAveraged(self):
        self.open(fragment="#m=entropy&s=100-300")
        step = np.array(self.index["runs"][0]["sources"][0]["step"])
        inside = (step >= 100) & (step <= 300)
        self.expect_cells(self.truth[(self.run_name(), "entropy")][:, inside].mean(axis=1))

    def test_ABlockOfEightBits_IsDecoded(self):
        self.open("eight", fragment="#m=entropy&s=0-1000", bits=8)
        values = self.truth[(self.run_name(), "entropy")].mean(axis=1)
        # 8 bits: half a step of 1/254 of the range of all moments, times that range over the range shown
        colours = self.cells(4)
        expected = ramp(self.index["themes"]["light"]["sequential"], (values - values.min()) / np.ptp(values)).T
        np.testing.assert_allclose(colours, expected, atol=6)

    def test_Enter_PinsTheHead(self):
        page = self.open()
        page.focus('.view[data-view="map"] canvas[tabindex]')
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector(".card h3:has-text('L2H1')")
        self.assertIn("L2H1", page.inner_text("#spoken"))
        page.wait_for_timeout(400)
        self.assertIn("h=2.1", page.url)

    def test_Arrows_AreReadOut(self):
        page = self.open(fragment="#m=entropy")
        page.focus('.view[data-view="map"] canvas[tabindex]')
        page.keyboard.press("ArrowRight")
        self.settle()
        value = self.truth[(self.run_name(), "entropy")][1, -1]
        self.assertIn(f"L0H1: entropy {float(f'{value:.4g}'):g}", page.inner_text("#spoken"))
        self.assertEqual(page.inner_text("#spoken"), page.inner_text("#readout"))

    def test_Escape_Clears(self):
        page = self.open(fragment="#m=entropy&h=1.1&s=10-90")
        page.wait_for_selector(".card")
        page.focus('.view[data-view="map"] canvas[tabindex]')
        page.keyboard.press("Escape")
        page.wait_for_selector(".card", state="detached")
        self.assertIn("last moment", page.inner_text("output.steps"))

    def test_Brackets_ChangeTheMetric(self):
        page = self.open(fragment="#m=entropy")
        before = page.input_value("#metric")
        page.keyboard.press("]")
        self.settle()
        self.assertNotEqual(page.input_value("#metric"), before)
        page.keyboard.press("[")
        self.settle()
        self.assertEqual(page.input_value("#metric"), before)

    def test_Slash_FindsAHead(self):
        page = self.open()
        page.keyboard.press("/")
        page.keyboard.type("L3H2")
        page.keyboard.press("Enter")
        page.wait_for_selector(".card h3:has-text('L3H2')")

    def test_Slash_ScrollsToTheSearch(self):
        for width in (390, 1280):
            with self.subTest(width):
                page = self.open(width=width)
                page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
                page.keyboard.press("/")
                page.wait_for_function("document.activeElement.id === 'find'")
                box = page.locator("#find").bounding_box()
                self.assertTrue(0 <= box["y"] and box["y"] + box["height"] <= 900, box)
                self.assertEqual(page.input_value("#find"), "")

    def test_Arrows_WalkFromAnywhereInTheSection(self):
        page = self.open(fragment="#m=entropy")
        for place in ('[data-view="map"] .check input', "table.heads th:nth-child(2) button"):
            with self.subTest(place):
                page.focus(place)
                page.keyboard.press("ArrowDown")
                page.keyboard.press("ArrowRight")
                self.settle()
                self.assertTrue(page.inner_text("#spoken").startswith("L1H1: entropy"), page.inner_text("#spoken"))
                page.keyboard.press("Escape")
                page.evaluate("document.activeElement.blur()")
        page.focus("#filter")
        page.keyboard.type("ab")
        page.keyboard.press("ArrowLeft")
        page.keyboard.type("c")
        self.assertEqual(page.input_value("#filter"), "acb")      # in a field, arrows are those of the text

    def test_Enter_LeadsToTheCard(self):
        page = self.open()
        page.focus('.view[data-view="map"] canvas[tabindex]')
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector("#spoken:has-text('L3H1 pinned')", state="attached")
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "card of L3H1")
        page.keyboard.press("Enter")
        self.assertEqual(page.evaluate("document.activeElement.closest('.card').querySelector('h3').textContent"), "L3H1")
        box = page.locator(".card h3").bounding_box()
        self.assertTrue(0 <= box["y"] <= 850, box)
        page.wait_for_timeout(400)
        self.assertIn("h=3.1", page.url)      # the address still holds the view
        page.keyboard.press("Escape")
        page.wait_for_selector("#spoken:has-text('L3H1 unpinned')", state="attached")

    def test_Pins_AreAtMostSix(self):
        page = self.open(fragment="#h=0.0,0.1,0.2,0.3,1.0,1.1")
        page.keyboard.press("/")
        page.keyboard.type("3.3")
        page.keyboard.press("Enter")
        page.wait_for_selector(".card h3:has-text('L3H3')")
        self.assertEqual(page.locator(".card").count(), 6)


class Runs(PageTest):
    """Pages of several runs: which one is shown, and what the tables are of."""

    def test_TheFirstRunWithTracks_IsShownFirst(self):
        page = self.open("plasticity-first", plasticity_first=True)
        self.assertEqual(page.input_value("label:has-text('Run') select >> nth=0"), "1")
        self.assertEqual(page.inner_text("#heads .of-run"), " — A, first (tiny)")
        self.expect_cells(self.truth[("first (tiny)", "k_norm")][:, -1])
        page.locator("label:has-text('Run') select >> nth=0").select_option("0")
        page.wait_for_timeout(400)
        self.assertIn("r=0", page.url)      # the link leads back to the run that was chosen


    def test_TablesOfTheFirstRun_SaySoWhileAnotherIsShown(self):
        page = self.open()
        notes = page.locator(".of-first")
        shown = lambda: [notes.nth(i).inner_text() for i in range(notes.count()) if notes.nth(i).is_visible()]
        self.assertEqual(shown(), [])
        page.locator("label:has-text('Run') select >> nth=0").select_option("1")
        page.wait_for_selector("#heads .of-run:has-text('frozen gain')")
        self.assertEqual(shown(), ["This table is of A, first (tiny)."] * 3)      # nearest, heads, transitions
        for table in ("nearest", "heads", "transitions"):
            above = page.locator(f"table.{table}").evaluate("(table) => [table.closest('.frame').previousElementSibling, table.closest('.frame').previousElementSibling?.previousElementSibling].some((one) => one?.matches('.of-first'))")
            self.assertTrue(above, table)
        self.assertIn("k_norm of B, frozen gain", page.inner_text(".table-tools"))      # the last column follows the map

    def test_ARowOfTheFirstRun_ShowsThatRun(self):
        for row, name in (("table.heads tbody tr:nth-child(6)", "L1H1"), ("table.nearest tr[data-head]", "L2H3")):
            with self.subTest(row):
                page = self.open(fragment="#r=1&h=1.1")
                page.wait_for_selector("#heads .of-run:has-text('frozen gain')")
                page.click(row)
                page.wait_for_selector("#heads .of-run:has-text('first (tiny)')")
                page.wait_for_selector(f".card h3:has-text('{name}')")      # a head that was pinned already stays pinned
                page.click(row)
                page.wait_for_selector(f".card h3:has-text('{name}')", state="detached")


class Scatter(PageTest):
    def axes(self):
        selects = self.page.locator('[data-view="scatter"] select')
        return [selects.nth(i).input_value() for i in range(2)], selects

    def test_Axes_AreDifferentAndThere(self):
        for metrics in (["k_norm", "k_pr"], ["entropy", "self"], ["q_norm", "entropy", "k_norm"]):
            with self.subTest(metrics):
                self.open("-".join(metrics), metrics=metrics)
                axes, _ = self.axes()
                self.assertEqual(len(set(axes)), 2)
                self.assertTrue(set(axes) <= set(metrics), axes)

    def test_AMetric_IsOfferedForOneAxisOnly(self):
        page = self.open()
        for _ in range(2):
            (x, y), selects = self.axes()
            self.assertEqual(selects.nth(0).locator("option:disabled").all_inner_texts(), [y])
            self.assertEqual(selects.nth(1).locator("option:disabled").all_inner_texts(), [x])
            selects.nth(0).select_option("self")
            self.settle()
        self.assertEqual(self.axes()[0], ["self", "entropy"])

    def test_OneMetricAlone_IsSaid(self):
        page = self.open("alone", fragment="#m=entropy", metrics=["entropy"])
        self.assertIn("Only one metric was measured here.", page.inner_text('[data-view="scatter"]'))
        self.assertEqual(self.messages, [])


class Levels(PageTest):
    """What a value can be held against: a tick on the colour bar, a dashed line among the curves, words."""

    def dark(self, selector, box):
        """The share of pixels in a box (x, y, width, height) that differ from paper by half of the way to ink."""
        return self.page.evaluate("""([selector, [x, y, width, height]]) => {
          const canvas = document.querySelector(selector), ratio = canvas.width / parseFloat(canvas.style.width);
          const { data } = canvas.getContext('2d').getImageData(Math.round(x * ratio), Math.round(y * ratio), Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio)));
          let dark = 0;
          for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 128 && data[i] + data[i + 1] + data[i + 2] < 384) ++dark;
          return dark / (data.length / 4);
        }""", [selector, box])

    def test_Words_CountTheHeadsAbove(self):
        page = self.open(fragment="#m=sink")
        values = self.truth[(self.run_name(), "sink")][:, -1]
        note = page.inner_text('[data-view="map"] .note')
        self.assertIn(f"uniform attention 0.03 ({(values > 0.03).sum()} of 16 heads above), static sink ≥ 0.3 ({(values > 0.3).sum()} above)", note)
        page = self.open(fragment="#m=sink&c=layer")      # a difference is not compared
        self.assertNotIn("uniform", page.inner_text('[data-view="map"] .note'))

    def test_ColourBar_HasATickAtEachLevel(self):
        page = self.open(fragment="#m=sink")
        page.locator(".map-key").scroll_into_view_if_needed()
        self.settle()
        values = np.log(self.truth[(self.run_name(), "sink")][:, -1])      # its scale is logarithmic
        wide = min(320, page.locator(".map-key").bounding_box()["width"] - 40)
        at = [34 + wide * (np.log(level) - values.min()) / np.ptp(values) for level in (0.03, 0.3)]
        dark = [x for x in range(30, int(34 + wide + 5)) if self.dark(".map-key canvas", [x, 9, 1, 3]) > 0.5]
        self.assertEqual(len(dark), 2)
        np.testing.assert_allclose(dark, at, atol=1)

    def dashes(self, metric, level):
        """The share of ink in the row of a level, of the axis that holds it and all values."""
        page = self.open(fragment=f"#m={metric}")
        canvas = page.locator('[data-view="curves"] canvas').last
        canvas.scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        values = self.truth[(self.run_name(), metric)]
        low, high = values.min(), values.max()
        size = canvas.bounding_box()
        bottom, top = size["height"] - 42, 14
        y = bottom + (level - low) / (high - low) * (top - bottom)
        return max(self.dark('[data-view="curves"] canvas', [200, y + by, size["width"] - 300, 1]) for by in (-1, 0, 1))

    def test_Curves_HaveADashedLineAtALevelWithin(self):
        self.assertGreater(self.dashes("entropy", 3.0), 0.35)      # half of it is ink
        self.assertLess(self.dashes("entropy", 2.5), 0.2)

    def test_Curves_KeepTheirScaleWhereALevelIsFarAway(self):
        page = self.open(fragment="#m=k_pr")
        label = page.locator('[data-view="map"] canvas[aria-label]').first.get_attribute("aria-label")
        values = self.truth[(self.run_name(), "k_pr")]
        self.assertIn(f"to {float(f'{values[:, -1].max():.4g}'):g}", label)
        for level in (values.min(), values.max()):      # no line
            self.assertLess(self.dashes("k_pr", level), 0.2)


class Time(PageTest):
    def curves(self):
        """The box of the curves, in view and drawn."""
        canvas = self.page.locator('.view[data-view="curves"] canvas').last
        canvas.scroll_into_view_if_needed()
        self.page.wait_for_timeout(300)
        return canvas.bounding_box()

    def test_Brush_ChangesTheMap(self):
        page = self.open(fragment="#m=entropy")
        before = self.cells(4)
        box = self.curves()
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 80, y)
        page.mouse.down()
        page.mouse.move(box["x"] + 150, y, steps=4)
        page.mouse.move(box["x"] + 260, y, steps=4)
        page.mouse.up()
        self.settle()
        self.assertIn("mean of", page.inner_text("output.steps"))
        after = self.cells(4)
        self.assertGreater(np.abs(after - before).max(), 20)
        page.wait_for_timeout(400)
        self.assertRegex(page.url, r"s=\d+-\d+")
        low, high = map(int, page.url.split("s=")[1].split("&")[0].split("-"))
        step = np.array(self.index["runs"][0]["sources"][0]["step"])
        self.expect_cells(self.truth[(self.run_name(), "entropy")][:, (step >= low) & (step <= high)].mean(axis=1))

    def test_Strips_HaveTheColoursOfTheTable(self):
        page = self.open(fragment="#m=entropy")
        page.locator('.view[data-view="strips"]').scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        values = self.truth[(self.run_name(), "entropy")]
        tokens = np.array(self.index["runs"][0]["sources"][0]["tokens"])
        for moment in (15, 25, len(tokens) - 1):
            share = float((tokens[moment] - tokens[0]) / (tokens[-1] - tokens[0]))
            colours = page.evaluate("""(share) => {
              const canvas = document.querySelector('[data-view="strips"] canvas[aria-hidden]'), c = canvas.getContext('2d');
              const width = parseFloat(canvas.style.width), height = parseFloat(canvas.style.height), high = (height - 42) / 16;
              const x = Math.min(Math.floor(52 + share * (width - 110)), width - 60);
              return Array.from({length: 16}, (_, i) => Array.from(c.getImageData(x, Math.round(4 + (i + 0.5) * high), 1, 1).data.slice(0, 3)));
            }""", share)
            expected = ramp(self.index["themes"]["light"]["sequential"], (values[:, moment] - values.min()) / np.ptp(values))
            np.testing.assert_allclose(np.array(colours), expected.T, atol=TOLERANCE)

    def test_Play_MovesTheSteps(self):
        page = self.open(fragment="#m=entropy")
        page.click(".play")
        page.wait_for_selector("output.steps:has-text('step 0')")
        page.wait_for_selector("output.steps:has-text('step 1')", timeout=5000)      # one moment a second with reduced motion
        page.click(".play")
        self.assertEqual(page.get_attribute(".play", "aria-pressed"), "false")

    def test_ClickOnACurve_PinsItsHead(self):
        page = self.open(fragment="#m=entropy")
        box = self.curves()
        page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + 20)
        page.wait_for_selector(".card")


class Table(PageTest):
    def visible(self):
        return self.page.locator("table.heads tbody tr:visible").count()

    def test_Filter_KeepsTheRowsThatPass(self):
        page = self.open()
        page.fill("#filter", "layer>=2")
        self.assertEqual(self.visible(), 8)
        page.fill("#filter", "layer>=2 head=1")
        self.assertEqual(self.visible(), 2)
        roles = [score["role"] for score in self.index["runs"][0]["roles"]["scores"]]
        page.fill("#filter", "role=static_sink")
        self.assertEqual(self.visible(), roles.count(2))

    def test_Filter_ThatCannotBeRead_SaysWhatIsExpected(self):
        page = self.open()
        for text, problem in [("leyer>=2", "“leyer” is not a column; columns are layer, head, entropy, sink, previous, induction, role, shown."), (">=2", "“” is not a column"),
                              ("layer>=", "A value must follow “layer>=”."), ("entropy<low", "A number must follow “entropy<”, not “low”.")]:
            with self.subTest(text):
                page.fill("#filter", text)
                told = page.inner_text(".table-tools [role=status]")
                self.assertIn(problem, told)
                self.assertIn("Example: layer>=2 role=sink", told)
                self.assertEqual(page.get_attribute("#filter", "aria-invalid"), "true")
                self.assertEqual(self.visible(), 16)
        page.fill("#filter", "layer>=2 role=sink")      # the example itself can be read
        self.assertRegex(page.inner_text(".table-tools [role=status]"), r"^\d of 16 heads$")
        self.assertEqual(page.get_attribute("#filter", "aria-invalid"), "false")

    def test_Sort_OrdersByNumber(self):
        page = self.open()
        page.click("table.heads th:nth-child(2) button")
        cells = [float(x) for x in page.locator("table.heads tbody td:nth-child(2)").all_inner_texts()]
        self.assertEqual(cells, sorted(cells, reverse=True))
        self.assertEqual(page.get_attribute("table.heads th:nth-child(2)", "aria-sort"), "descending")
        page.click("table.heads th:nth-child(2) button")
        cells = [float(x) for x in page.locator("table.heads tbody td:nth-child(2)").all_inner_texts()]
        self.assertEqual(cells, sorted(cells))
        page.click("table.heads th:nth-child(6) button")
        roles = page.locator("table.heads tbody td:nth-child(6)").all_inner_texts()
        self.assertEqual(roles, sorted(roles, key=lambda role: role.replace("–", "")))      # words begin with A; the dash sorts before letters

    def test_Sort_LeavesWhatIsMissingLast(self):
        page = self.open("hostile", hostile=True)      # head 0 has no entropy
        for _ in range(2):
            page.click("table.heads th:nth-child(2) button")
            self.assertEqual(page.locator("table.heads tbody tr th").last.inner_text(), "L0H0")

    def test_LastColumn_FollowsTheMetric(self):
        page = self.open(fragment="#m=entropy")
        page.locator("table.heads").scroll_into_view_if_needed()
        page.wait_for_selector("table.heads td.shown span:not(:empty)")
        shown = [float(x) for x in page.locator("table.heads td.shown").all_inner_texts()]
        np.testing.assert_allclose(shown, self.truth[(self.run_name(), "entropy")][:, -1], rtol=1e-3)


    def test_LastColumn_IsTheMeanOfTheSteps(self):
        page = self.open(fragment="#m=entropy&s=100-300")
        page.locator("table.heads").scroll_into_view_if_needed()
        page.wait_for_selector("table.heads td.shown span:not(:empty)")
        shown = [float(x) for x in page.locator("table.heads td.shown").all_inner_texts()]
        step = np.array(self.index["runs"][0]["sources"][0]["step"])
        mean = self.truth[(self.run_name(), "entropy")][:, (step >= 100) & (step <= 300)].mean(axis=1)
        np.testing.assert_allclose(shown, mean, rtol=1e-3)


class Cards(PageTest):
    def test_Token_ShowsWhereItLooks(self):
        page = self.open(fragment="#h=1.1")
        token = page.locator(".card .token").nth(9)
        token.scroll_into_view_if_needed()
        token.click()
        self.assertIn("looks at", page.inner_text(".attention .readout"))
        page.click(".attention .tools button")
        self.assertIn("is looked at by", page.inner_text(".attention .readout"))

    def test_WithoutTheFirstToken_NothingGoesToIt(self):
        page = self.open(fragment="#h=1.1")
        page.locator(".card .token").nth(9).click()
        self.assertIn("0 “The”", page.inner_text(".attention .readout"))
        page.check(".attention .check input")
        page.locator(".card .token").nth(9).hover()
        self.assertNotIn("0 “The”", page.inner_text(".attention .readout"))

    def attention(self, layer, head, without_first=False):
        """Weights [query][key] from the bytes of the page: squares, rows that sum to 1."""
        data = np.frombuffer(self.truth[(self.run_name(), "attention")][(layer, head)], np.uint8)
        pieces = len(synthetic.TEXT)
        rows = np.zeros((pieces, pieces))
        rows[np.tril_indices(pieces)] = (data / 255) ** 2
        if without_first:
            rows[:, 0] = 0
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(rows / rows.sum(axis=1, keepdims=True))

    @staticmethod
    def share(value, even):
        digits = lambda x: f"{float(f'{x:.2g}'):g}" if x >= 1e-3 else f"{x:.1e}".replace("e-0", "e−")
        return f"{digits(value)}, {digits(value / even)} × uniform"

    def test_Shares_StandBesideThoseOfUniformAttention(self):
        page = self.open(fragment="#h=1.1")
        rows, tokens, readout = self.attention(1, 1), page.locator(".card .token"), page.locator(".attention .readout")
        first = int(rows[9].argmax())
        tokens.nth(9).hover()
        self.assertIn(f"looks at: {first} “{synthetic.TEXT[first].replace(' ', '·')}” {self.share(rows[9, first], 1 / 10)}; ", readout.inner_text())
        tokens.nth(9).click()
        tokens.nth(4).click()      # the second token that is tapped is read by the first
        self.assertIn(f"9 “·then” looks at 4 “·at”: {self.share(rows[9, 4], 1 / 10)}. Most", readout.inner_text())
        page.check(".attention .check input")
        self.assertIn(f"4 “·at”: {self.share(self.attention(1, 1, True)[9, 4], 1 / 9)}.", readout.inner_text())
        page.uncheck(".attention .check input")
        page.click(".attention .tools button")
        tokens.nth(20).click()      # who looks at token 9: token 20, which can read 21 tokens
        self.assertIn(f"9 “·then” is looked at by 20 “·a”: {self.share(rows[20, 9], 1 / 21)}.", readout.inner_text())
        tokens.nth(9).click()
        page.mouse.move(2, 2)
        all_shares, even = rows.mean(axis=0), np.mean([(np.arange(len(rows)) <= q) / (q + 1) for q in range(len(rows))], axis=0)
        most = int(all_shares.argmax())
        self.assertIn(f"Most: {most} “The” {self.share(all_shares[most], even[most])};", readout.inner_text())

    def test_Attention_IsWalkedWithArrows(self):
        page = self.open(fragment="#h=1.1")
        rows, readout = self.attention(1, 1), page.locator(".attention .readout")
        page.focus(".matrix canvas[tabindex]")
        for key in ["ArrowDown"] * 6 + ["ArrowLeft"] * 3:      # the first chooses token 0, the first to the side the token itself
            page.keyboard.press(key)
        self.assertIn(f"5 “·the” looks at 3 “·back”: {self.share(rows[5, 3], 1 / 6)}.", readout.inner_text())
        page.focus(".tokens")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowUp")
        self.assertIn(f"6 “·first” looks at 2 “·looks”: {self.share(rows[6, 2], 1 / 7)}.", readout.inner_text())
        page.keyboard.press("Escape")
        self.assertIn("Shade: share of all attention", readout.inner_text())
        self.assertEqual(page.locator(".card").count(), 1)      # Esc let go of the token, not of the head

    def test_Picture_HasAxesAndAKeyOfItsColours(self):
        page = self.open(fragment="#h=1.1")
        canvas = page.locator(".matrix canvas[tabindex]")
        canvas.scroll_into_view_if_needed()
        page.wait_for_timeout(200)
        page.evaluate("""() => { window.written = []; const write = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { written.push(text); write.call(this, text, x, y); }; }""")
        rows, box = self.attention(1, 1), canvas.bounding_box()
        side, n = box["width"] - 52, len(rows)
        for query, key in [(30, 0), (30, 29), (12, 5)]:
            page.mouse.move(box["x"] + 46 + (key + 0.5) * side / n, box["y"] + 6 + (query + 0.5) * side / n)
            self.settle()
            self.assertIn(f" looks at {key} “{synthetic.TEXT[key].replace(' ', '·')}”: {self.share(rows[query, key], 1 / (query + 1))}.", page.inner_text(".attention .readout"))
        written = page.evaluate("written")
        for words in ("query (reads)", "key (is read)", "share of attention", "0.1", "1", "10", "40", "12", "5"):
            self.assertIn(words, written)
        colours = page.evaluate("""([n, cells]) => { const canvas = document.querySelector('.matrix canvas[aria-hidden]'), c = canvas.getContext('2d');
          const side = parseFloat(canvas.style.width) - 52;
          return cells.map(([q, k]) => Array.from(c.getImageData(Math.floor(46 + (k + 0.5) * side / n), Math.floor(6 + (q + 0.5) * side / n), 1, 1).data)); }""",
                                [n, [[30, 0], [30, 29], [12, 5], [46, 46], [5, 12]]])
        for (query, key), colour in zip([(30, 0), (30, 29), (12, 5), (46, 46)], colours):
            np.testing.assert_allclose(colour[:3], ramp(self.index["themes"]["light"]["sequential"], rows[query, key] ** 0.5), atol=TOLERANCE)
        self.assertEqual(colours[4][3], 0)      # a later key: blank

    def test_Examples_OutlineTheQuery(self):
        page = self.open(fragment="#h=1.1")
        page.wait_for_selector(".card .example")
        self.assertEqual(page.locator(".card .example").count(), 2)
        self.assertEqual(page.locator(".card .example .chosen").count(), 2)

    def test_OneMoment_HasACardToo(self):
        page = self.open("moment", fragment="#h=1.1", moments=1)
        page.set_viewport_size({"width": 1280, "height": 4000})
        page.wait_for_timeout(300)
        self.assertEqual(page.locator(".card").count(), 1)
        self.assertEqual(self.messages, [])

    def test_WhiteSpace_IsVisible(self):
        page = self.open(fragment="#h=1.1")
        text = page.inner_text(".tokens")
        for sign in ("·", "⏎", "⇥", "⟨0xE2⟩"):
            self.assertIn(sign, text)

    def test_Tests_OfAllRoles_ThoseThatPassFirst_ThenTheNearest(self):
        roles = self.open(fragment="#h=1.1") and self.index["runs"][0]["roles"]
        for place in (5, 0, 10):
            page = self.open(fragment=f"#h={place // 4}.{place % 4}")
            values, gaps = roles["scores"][place]["values"], {}
            for test, value in zip(roles["tests"], values):
                gaps[test["role"]] = max(gaps.get(test["role"], -9), test["minimum"] - value)
            order = sorted(gaps, key=lambda role: max(0, gaps[role]))
            shown = page.locator(".card div.tests summary").all_inner_texts()
            self.assertEqual([text.split(":")[0] for text in shown], [self.index["roles"][role]["text"] for role in order])
            for text, role in zip(shown, order):
                self.assertEqual("passed, short by" in text, gaps[role] > 0, text)
                if gaps[role] > 0:
                    own = [value >= test["minimum"] for test, value in zip(roles["tests"], values) if test["role"] == role]
                    self.assertIn(f"{sum(own)} of {len(own)} passed", text)
                    self.assertAlmostEqual(float(text.split("short by ")[1]), gaps[role], delta=0.06 * gaps[role])      # two digits
            self.assertEqual(page.locator(".card div.tests details[open]").count(), 1)
            rows = page.locator(".card .tests tr.passed").count()
            self.assertEqual(rows, sum(value >= test["minimum"] for test, value in zip(roles["tests"], values)))

    def test_RowOfTheNearestHead_OpensItsCard(self):
        page = self.open()
        page.click("table.nearest td")
        page.wait_for_selector(".card h3:has-text('L2H3')")


class Compare(PageTest):
    def test_Heading_NamesTheRunThatIsShown(self):
        page = self.open()
        self.assertEqual(page.inner_text("#heads h2"), f"Which heads? — {self.index['runs'][0]['label']}")
        page.select_option(".settings select", "1")
        self.settle()
        self.assertEqual(page.inner_text("#heads h2"), f"Which heads? — {self.index['runs'][1]['label']}")

    def test_RunsOfOneSeed_AreComparedHeadByHead(self):
        page = self.open()
        self.assertEqual(page.locator('[data-view="compare"] .map-frame').count(), 3)
        self.assertIn("same weights", page.inner_text('[data-view="compare"]'))

    def test_RunsOfOtherSeeds_AreNot_AndThePageSaysWhy(self):
        page = self.open("seeds", other_seed=True)
        self.assertEqual(page.locator('[data-view="compare"] .map-frame').count(), 0)
        self.assertIn("not known to have the same weights at the start or to be the same model", page.inner_text('[data-view="compare"]'))
        self.assertTrue(page.locator('#mode option[value="run"]').is_disabled())


# Keeps what is stroked and filled: colour, dash, and whether a path with corners was filled.
PAINT = """() => { window.painted = []; const kind = CanvasRenderingContext2D.prototype, { stroke, fill } = kind;
  kind.stroke = function () { painted.push(`line ${this.strokeStyle} ${this.getLineDash()}`); stroke.call(this); };
  const Path = window.Path2D;
  window.Path2D = class extends Path { constructor(text) { super(text); this.text = text ?? ''; } };
  kind.fill = function (path) { if (path) painted.push(`dot ${this.fillStyle} ${path.text.includes('a') ? 0 : path.text.split('L').length}`); fill.apply(this, arguments); }; }"""


class Colours(PageTest):
    """More things than colours: every one has a mark of its own, and is drawn with it."""

    # Colour, dash and shape of the marks of a key.
    MARKS = """(list) => list.map((mark) => { const [line, dot] = mark.querySelectorAll('path');
      return [line.getAttribute('stroke'), line.getAttribute('stroke-dasharray').split(' ').join(), dot ? (/a/.test(dot.getAttribute('d')) ? 0 : dot.getAttribute('d').split('L').length) : null]; })"""

    def test_Effects_DifferInColourDashOrShape(self):
        for scheme in ("light", "dark"):
            with self.subTest(scheme):
                page = self.open("effects", scheme=scheme, runs=0, more_effects=22)
                chips = page.locator('[data-view="compare"] .chip')
                self.assertEqual(chips.count(), 25)
                marks = page.eval_on_selector_all('[data-view="compare"] .chip svg', self.MARKS)
                self.assertEqual(len({(colour, dash) for colour, dash, _ in marks}), 25)
                self.assertEqual(len({(colour, shape) for colour, _, shape in marks}), 25)
                paper = self.index["themes"][scheme]["paper"]
                rgb = lambda text: "rgb(" + ",".join(str(int(text[i:i + 2], 16)) for i in (1, 3, 5)) + ")"
                self.assertGreater(min(contrast(rgb(colour), rgb(paper)) for colour, _, _ in marks), 1.5)
                page.evaluate(PAINT)
                chips.nth(20).click()
                page.locator('[data-view="compare"] canvas').nth(1).scroll_into_view_if_needed()
                self.settle()
                painted = page.evaluate("painted")
                for i in (0, 20):
                    colour, dash, shape = marks[i]
                    self.assertIn(f"line {colour} {dash}", painted)
                    self.assertIn(f"dot {colour} {shape}", painted)
                self.assertNotIn(f"line {marks[19][0]} {marks[19][1]}", painted)      # not chosen

    def test_Losses_OfManyRuns_DifferInColourOrDash(self):
        page = self.open("runs", runs=10, study=False, moments=4, layers=1, heads=1, key_heads=1)
        figure = page.locator('[data-view="compare"] .figure').first
        marks = figure.locator(".key svg").evaluate_all(self.MARKS)
        self.assertEqual(len({(colour, dash) for colour, dash, _ in marks}), 10)
        page.evaluate(PAINT)
        figure.scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        dashes = {line.split(") ")[1] for line in page.evaluate("painted") if line.startswith("line rgba")}      # runs are drawn a little transparent
        self.assertEqual(dashes, {dash for _, dash, _ in marks})


class Whole(PageTest):
    def test_StudyWithoutRuns_ShowsItsEffects(self):
        page = self.open("study", fragment="#h=1.1", runs=0)
        page.wait_for_timeout(300)
        self.assertEqual(page.locator('[data-view="compare"] .figure').count(), 3)
        self.assertEqual(self.messages, [])

    def test_NoConsoleMessage_OneRequest(self):
        page = self.open(fragment="#m=entropy&h=1.1,2.2&s=10-200")
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": 1280, "height": height})      # every canvas is in view and drawn
        page.wait_for_timeout(500)
        self.assertEqual(self.messages, [])
        self.assertEqual(len(self.requests), 1)

    def canvas_texts(self, name, fragment, **options):
        page = self.page_of(bypass=True)
        page.add_init_script(TEXTS)
        address, self.index, self.truth = made(name, **options)
        page.goto(address + fragment)
        page.wait_for_selector("html[data-ready]")
        self.scroll_through()
        return lambda view: page.evaluate("(view) => Array.from(texts).filter(([canvas]) => canvas.closest(`[data-view=${view}]`)).flatMap(([, list]) => list.map((one) => one.text))", view)

    def test_DamagedData_AreNamed(self):
        texts = self.canvas_texts("damaged", "#m=entropy", damaged=("entropy",))
        self.page.wait_for_selector(".problem[data-kind=data]")
        for view in ("map", "curves"):
            self.assertIn("its data in this page are damaged", texts(view))
            self.assertNotIn("…", texts(view))
        self.assertEqual(self.page.locator(".problem").count(), 1)
        self.assertIn("entropy of A, first (tiny) (cannot be inflated)", self.page.inner_text(".problem"))
        self.page.select_option("#metric", "k_norm")      # the others are there
        self.page.wait_for_selector('.view[data-view="map"]:not([data-field=""])')
        self.assertEqual(self.messages, [])
        self.expect_cells(self.truth[(self.run_name(), "k_norm")][:, -1])

    def test_APictureThatCannotBeDrawn_IsNamed_AndLeavesTheOthers(self):
        page = self.open(fragment="#m=entropy")
        page.evaluate("""() => { const kind = CanvasRenderingContext2D.prototype, { fillText } = kind;
          kind.fillText = function (text, ...rest) { if (text === 'events') throw new Error('no events today'); fillText.call(this, text, ...rest); }; }""")
        page.locator('[data-view="loss"]').scroll_into_view_if_needed()
        page.click("#theme")
        page.click("#theme")
        page.wait_for_selector(".problem:has-text('Training and validation loss'):has-text('no events today')")
        self.assertEqual(self.messages, [])
        self.expect_cells(self.truth[(self.run_name(), "entropy")][:, -1])

    def test_ScriptAndStyle_StaySmall(self):
        self.assertLess(sum(len(text.encode()) for text in web), 120_000)

    def test_HostileNames_StayText(self):
        page = self.open("hostile", fragment="#m=sink&h=1.1,0.0", hostile=True)
        page.set_viewport_size({"width": 1280, "height": page.evaluate("document.documentElement.scrollHeight")})
        page.wait_for_timeout(500)
        self.assertEqual(page.locator("img").count(), 0)
        self.assertEqual(self.messages, [])
        self.assertIn("</script><img·src=x", page.inner_text(".tokens"))

    def test_Fragment_RestoresTheView(self):
        page = self.open(fragment="#m=sink&h=3.1,0.2&s=50-250&c=change&x=self&y=previous&r=1")
        self.assertEqual(page.input_value("#metric"), "sink")
        self.assertEqual(page.input_value("#mode"), "change")
        self.assertEqual(page.locator(".pins .chip").all_inner_texts(), ["L3H1\n×", "L0H2\n×"])
        self.assertIn("steps", page.inner_text("output.steps"))

    def test_Fragment_SaysWhatThePageDoesNotHave(self):
        for fragment, *problems in [
                ("#m=nothing&h=99.99,x&s=9-&r=77", "metric “nothing”, which this page does not have", "head “L99H99”, which", "head “x”, which is not a head such as 3.1",
                 "steps “9-”", "run “77”"),
                ("#%%%=1&h=", "part “%%%=1”"), ("#m=&s=300-10", "steps “300-10”"), ("#s=5000-6000", "steps 5000-6000, but there are steps 0 to 400")]:
            with self.subTest(fragment):
                page = self.open(fragment=fragment)
                line = page.locator(".problem")
                self.assertTrue(line.is_visible())
                for problem in problems:
                    self.assertIn(problem, line.inner_text())
                self.assertEqual(page.locator(".card").count(), 0)
                self.assertEqual(self.messages, [])
                page.evaluate("location.hash = '#m=sink&h=1.1'")      # the next link is whole
                page.wait_for_selector(".problem", state="detached")
                page.wait_for_selector(".card")

    def test_Fragment_OfAPageWithoutRuns_IsReportedToo(self):
        page = self.open("study", fragment="#h=1.1", runs=0)
        self.assertIn("head “L1H1”, which this page does not have", page.inner_text(".problem"))
        page.click(".problem button")
        self.assertEqual(page.locator(".problem").count(), 0)

    def test_NoSidewaysScroll(self):
        for width in (320, 390, 768, 1280):
            with self.subTest(width):
                page = self.open("wide", fragment="#m=entropy&h=1.1,2.2", width=width, layers=6, heads=32, key_heads=8)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)

    def scroll_through(self):
        """Every view is drawn once it was in sight."""
        y = 0
        while y < self.page.evaluate("document.documentElement.scrollHeight"):
            self.page.evaluate(f"window.scrollTo(0, {y})")
            self.page.wait_for_timeout(80)
            y += 700

    def test_NothingIsWiderThanItsFrame_AndWhatScrollsSaysSo(self):
        for width in (390, 768, 1280):
            with self.subTest(width):
                page = self.open("wide", fragment="#m=entropy&h=1.1,2.2", width=width, layers=6, heads=32, key_heads=8)
                self.scroll_through()
                wide = page.evaluate("""() => Array.from(document.querySelectorAll('canvas, table, pre')).filter((one) => {
                  const frame = one.closest('.frame, .map-frame, pre'), box = (frame ?? one.parentElement.parentElement).getBoundingClientRect();
                  return box.left < 0 || box.right > innerWidth || (!frame && one.getBoundingClientRect().width > box.width + 0.5);
                }).map((one) => one.outerHTML.slice(0, 80))""")
                self.assertEqual(wide, [])
                frames = page.evaluate("""() => Array.from(document.querySelectorAll('.frame, .map-frame')).filter((one) => one.checkVisibility())
                  .map((one) => [one.scrollWidth > one.clientWidth + 1, one.nextElementSibling.matches('.hint:not([hidden])'), one.classList.contains('wide'),
                                 ['auto', 'scroll'].includes(getComputedStyle(one).overflowX)])""")
                self.assertTrue(all(scrolls == hint == fades and can for scrolls, hint, fades, can in frames), frames)
                if width == 390:
                    self.assertTrue(frames[0][0])      # 32 heads of 24 pixels
                    page.evaluate("document.querySelector('.map-frame').scrollLeft = 1e6")
                    page.wait_for_selector('.map-frame:not(.wide)')

    def test_Labels_DoNotCoverEachOther(self):
        for width in (390, 768, 1280):
            with self.subTest(width):
                page = self.page_of(width=width)
                page.add_init_script(TEXTS)
                address, self.index, _ = made("deep", layers=12, unigram=2.6)      # near the other level of the loss
                page.goto(address + "#h=1.1,10.2")
                page.wait_for_selector("html[data-ready]")
                self.scroll_through()
                many, found = page.evaluate(COVERED)
                self.assertGreater(many, 200)
                self.assertEqual(found, [])

    def test_Sections_AreReachedFromTheTop(self):
        for width in (390, 1280):
            with self.subTest(width):
                page = self.open(fragment="#m=sink", width=width)
                links = page.locator("nav a")
                self.assertEqual(links.all_inner_texts(), ["What happened?", "Which heads?", "When?", "Why?", "Compare", "Can I trust it?"])
                boxes = [links.nth(i).bounding_box() for i in range(6)]
                self.assertTrue(all(box["height"] >= 24 and box["x"] + box["width"] <= width for box in boxes), boxes)
                links.nth(2).click()
                page.wait_for_timeout(100)
                top = page.locator("#time h2").bounding_box()["y"]
                covered = page.evaluate("Math.max(...Array.from(document.querySelectorAll('[data-view=controls], .now'), (one) => one.getBoundingClientRect().bottom))")
                self.assertTrue(covered <= top < 300, (covered, top))
                self.assertNotIn("#time", page.url)      # the fragment is the view's

    def test_Targets_AreLargeEnough(self):
        page = self.open(fragment="#h=1.1", width=390)
        small = page.evaluate("""() => Array.from(document.querySelectorAll('button, select, input, summary, a')).filter((one) => one.offsetParent)
          .map((one) => [one.outerHTML.slice(0, 80), (one.closest('label') ?? one).getBoundingClientRect()])
          .filter(([_, box]) => box.height < 24 || box.width < 24).map(([text, box]) => `${text} ${box.width} × ${box.height}`)""")
        self.assertEqual(small, [])

    def test_Keyboard_Only(self):
        page = self.open()
        seen = []
        for _ in range(40):
            page.keyboard.press("Tab")
            name = page.evaluate("document.activeElement.id || document.activeElement.tagName")
            seen.append(name)
            if name == "from":
                page.keyboard.press("Home")
            if name == "CANVAS":
                break
        self.assertEqual(seen[-1], "CANVAS")
        for name in ("theme", "metric", "mode", "find", "from", "to"):
            self.assertIn(name, seen)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector(".card h3:has-text('L1H0')")
        self.assertIn("mean of", page.inner_text("output.steps"))

    def test_Tab_ReachesEverything_AndIsSeen(self):
        for scheme in ("light", "dark"):
            with self.subTest(scheme):
                page = self.open(fragment="#h=1.1", scheme=scheme)
                # Marks what can be used, in the order of the page.
                many = page.evaluate("""() => Array.from(document.querySelectorAll('button, a[href], select, input, summary, [tabindex="0"]'))
                  .filter((one) => one.checkVisibility() && !one.disabled).map((one, i) => (one.dataset.place = i)).length""")
                seen = []
                for _ in range(many):
                    page.keyboard.press("Tab")
                    place, style, width, colour = page.evaluate("""() => { const one = document.activeElement, style = getComputedStyle(one);
                      return [Number(one.dataset.place ?? -1), style.outlineStyle, parseFloat(style.outlineWidth), style.outlineColor]; }""")
                    seen.append(place)
                    self.assertEqual((style, width >= 2), ("solid", True), page.evaluate("document.activeElement.outerHTML.slice(0, 90)"))
                    self.assertGreaterEqual(contrast(colour, page.evaluate("getComputedStyle(document.body).backgroundColor")), 3)
                self.assertEqual(seen, list(range(many)))

    def test_ThemeButton_ChangesPaper(self):
        page = self.open()
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("#theme")
        self.assertNotEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), light)

    def test_Print_IsLightAndFine(self):
        page = self.open(fragment="#h=1.1", scheme="dark")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(page.evaluate("document.documentElement.dataset.theme"), "light")
        ratios = page.evaluate("Array.from(document.querySelectorAll('canvas'), (one) => one.width / parseFloat(one.style.width))")
        self.assertTrue(all(abs(ratio - 3) < 0.1 for ratio in ratios), ratios)
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        self.assertEqual(page.evaluate("document.documentElement.dataset.theme"), "dark")

    def test_Print_HasEveryPicture_ThoughNoneWasInSight(self):
        page = self.open(fragment="#h=1.1")
        page.wait_for_timeout(900)      # blocks are decoded ahead
        page.evaluate("""() => { window.cleared = 0; const kind = CanvasRenderingContext2D.prototype, { clearRect } = kind;
          kind.clearRect = function (...box) { ++cleared; clearRect.apply(this, box); }; dispatchEvent(new Event('beforeprint')); }""")
        blank = page.evaluate("""() => Array.from(document.querySelectorAll('.surface'), (one) => [one.querySelector('canvas'), one.querySelector('canvas:last-child').getAttribute('aria-label')])
          .filter(([canvas]) => !canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value, i) => i % 4 === 3 && value)).map(([, label]) => label)""")
        self.assertEqual(blank, [])
        # Chromium prints the commands of a canvas: clearing the upper one erases what lies below on paper.
        self.assertEqual(page.evaluate("cleared"), 0)
        self.assertNotIn("", page.locator("table.heads td.shown").all_inner_texts())

    @unittest.skipUnless(shutil.which("pdftoppm"), "pdftoppm is missing (poppler-utils)")
    def test_Paper_HasTheMapAndNoPageIsNearlyEmpty(self):
        for name, fragment, options in [("train", "#m=entropy&h=1.1,2.2", {"runs": 1, "study": False}), ("study", "", {"runs": 0}), ("small", "#m=entropy&h=1.1", {})]:
            with self.subTest(name):
                page = self.open(name, fragment=fragment, scheme="dark", **options)
                page.wait_for_timeout(900)
                pages = paper(page.pdf(format="A4", prefer_css_page_size=True))
                filled = [np.flatnonzero((one.min(axis=2) < 250).any(axis=1)) for one in pages]
                for rows, one in list(zip(filled, pages))[:-1]:      # the last ends where the text ends
                    self.assertGreater(rows[-1] / len(one), 0.4)
                edges = [one[:, [2, -3]] for one in pages]      # nothing runs over the margins
                self.assertTrue(all((edge == 255).all() for edge in edges))
                if options.get("runs") == 0:
                    self.assertEqual(len(pages), 1)
                    continue
                values = self.truth[(self.run_name(), "entropy")][:, -1]
                for colour in ramp(self.index["themes"]["light"]["sequential"], (values - values.min()) / np.ptp(values)).T:
                    found = max((np.abs(one.astype(int) - colour).max(axis=2) <= 3).sum() for one in pages)
                    self.assertGreater(found, 100, colour)      # a cell has 46 × 46 pixels of CSS, about 29 × 29 at 60 dpi

    def test_WithoutScript_TextAndTablesStay(self):
        page = self.open(script=False)
        self.assertTrue(page.locator("h1").is_visible())
        self.assertTrue(page.locator("table.heads").is_visible())
        self.assertEqual(page.locator(".view:visible").count(), 0)

    def test_Axe_FindsNothing(self):
        for width in (390, 1280):
            for scheme in ("light", "dark"):
                with self.subTest(f"{width} {scheme}"):
                    page = self.open(fragment="#m=entropy&h=1.1,2.2&s=10-200", width=width, scheme=scheme, bypass=True)
                    page.wait_for_timeout(300)
                    self.assertEqual(violations(page), [])


class Written(PageTest):
    """Pages that the program wrote: a training, its inspection with attention and examples, a study."""

    SMALL = ("train.tokens=4096", "train.batch=2", "train.seq_len=64", "train.probe_every=8", "train.validation_batches=1")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if PROGRAM is None:
            raise unittest.SkipTest("no program was named")

    def run_program(self, *arguments):
        subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder.name, capture_output=True, check=True)

    def test_WithoutScript_TheVerdictAndItsTablesAreRead(self):
        study = pathlib.Path(__file__).resolve().parents[2] / "docs/studies/qk_norm_88m"
        self.run_program("report", study, "--out", "study.html")
        page = self.page_of(script=False)
        page.goto((pathlib.Path(folder.name) / "study.html").as_uri())
        self.assertIn("A − C", page.inner_text("p.verdict"))
        cells = page.locator("table.effects tbody tr").first.locator("td")
        # Right ends of numbers are below each other; words begin below each other.
        for column, side in ((1, "right"), (2, "right"), (6, "left")):
            self.assertEqual(cells.nth(column).evaluate("(cell) => getComputedStyle(cell).textAlign"), side)

    def test_Pages_AreQuietAndAccessible(self):
        (pathlib.Path(folder.name) / "text.txt").write_text("one </script><b> two\n" * 4)
        self.run_program("train", "--out", "trained", "--set", *self.SMALL)
        self.run_program("inspect", "trained", "--text", "text.txt", "--tokens", 40, "--examples", 5, "--out", "inspected")
        self.run_program("study", "--out", "studied", "--seeds", "1,2", "--set", *self.SMALL)
        for run in ("trained", "inspected", "studied"):
            for width in (390, 1280):
                for scheme in ("light", "dark"):
                    with self.subTest(f"{run} {width} {scheme}"):
                        page = self.page_of(width=width, scheme=scheme, bypass=True)
                        page.goto((pathlib.Path(folder.name) / run / "report.html").as_uri() + "#h=1.1,0.0")
                        page.wait_for_selector("html[data-ready]")
                        page.set_viewport_size({"width": width, "height": min(20_000, page.evaluate("document.documentElement.scrollHeight"))})
                        page.wait_for_timeout(600)
                        self.assertEqual(self.messages, [])
                        self.assertEqual(len(self.requests), 1)
                        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                        self.assertEqual(violations(page), [])


if __name__ == "__main__":
    unittest.main()
