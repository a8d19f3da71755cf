// Charts: the curves over beam sizes, and the course of a search with its slider.
"use strict";

(() => {
  const { curves, course } = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Charts look as the style of the page says.
  function config() {
    const style = getComputedStyle(document.documentElement);
    const [ink, faint] = ["--ink", "--line"].map((name) => style.getPropertyValue(name));
    const text = { labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12 };
    return {
      font: getComputedStyle(document.body).fontFamily,
      background: null,
      view: { stroke: null },
      axis: { ...text, titleFontWeight: "normal", gridColor: faint, domainColor: faint, tickColor: faint },
      legend: { ...text, columns: innerWidth < 600 ? 1 : 3, labelLimit: 0 },
    };
  }

  function withColours(spec, searches) {
    const colours = searches.map((search) => (dark.matches ? search.light : search.colour));
    for (const { encoding } of spec.layer) {
      if (encoding.color?.scale) encoding.color.scale.range = colours;
    }
    return spec;
  }

  // Draws all charts, and again when the colours change; `update` is called with the views.
  function draw(charts, prepare, update) {
    const drawn = async () => {
      const views = [];
      for (const element of document.querySelectorAll(".chart")) {
        const spec = prepare(charts[element.dataset.chart].spec);
        const options = { mode: "vega-lite", actions: false, renderer: "svg" };
        const { view } = await vegaEmbed(element, { ...spec, config: config() }, options);
        views.push(view);
      }
      update(views);
    };
    dark.addEventListener("change", drawn);
    drawn();
  }

  function showCurves() {
    const set = document.getElementById("curves-set");
    const boxes = [...document.querySelectorAll(".searches input")];
    let views = [];
    const update = () => {
      const hidden = boxes.filter((box) => !box.checked).map((box) => box.value);
      for (const view of views) view.signal("dataset", set.value).signal("hidden", hidden).run();
    };
    for (const control of [set, ...boxes]) control.addEventListener("change", update);
    draw(curves.charts, (spec) => withColours(spec, curves.searches), (drawn) => {
      views = drawn;
      update();
    });
  }

  const NUMBERS = [
    ["p_end", "ending probability", 4],
    ["not_ended", "not ended yet", 4],
    ["best_final", "best final score", 3],
    ["kept", "kept", 0],
    ["running", "running", 0],
    ["ended", "ended", 0],
  ];

  function element(tag, text, className = "") {
    const made = document.createElement(tag);
    made.textContent = text;
    made.className = className;
    return made;
  }

  function shown(value, digits) {
    return value === null ? "none yet" : value.toFixed(digits);
  }

  function showPosition(at) {
    const numbers = NUMBERS.filter(([name]) => name in at).map(([name, title, digits]) => {
      const pair = document.createElement("div");
      pair.append(element("dt", title), element("dd", shown(at[name], digits)));
      return pair;
    });
    document.getElementById("numbers").replaceChildren(...numbers);
    const rows = at.hypotheses.map(({ text, ended, score }) => {
      const row = document.createElement("tr");
      const hypothesis = element("td", text, ended ? "has-ended" : "");
      if (ended) hypothesis.append(element("small", " ends here"));
      row.append(hypothesis, element("td", shown(score, 3), "number"));
      return row;
    });
    document.querySelector("#kept tbody").replaceChildren(...rows);
    const more = at.kept - at.hypotheses.length;
    document.getElementById("more").textContent = more > 0 ? `and ${more} more` : "";
  }

  function showCourse() {
    const slider = document.getElementById("position");
    const output = document.querySelector("output[for=position]");
    let views = [];
    const update = () => {
      const n = Number(slider.value);
      output.textContent = `${n} of ${course.positions.length}`;
      showPosition(course.positions[n - 1]);
      for (const view of views) view.signal("N", n).run();
    };
    slider.addEventListener("input", update);
    update();
    draw(course.charts, (spec) => spec, (drawn) => {
      views = drawn;
      for (const view of views) {
        view.addEventListener("click", (_, item) => {
          if (item?.datum?.n === undefined) return;
          slider.value = item.datum.n;
          update();
        });
      }
      update();
    });
  }

  if (curves?.charts.length) showCurves();
  if (course?.positions.length) showCourse();
})();
