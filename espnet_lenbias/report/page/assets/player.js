// The player of an utterance: its waveform, and the words below it at their times.
"use strict";

(() => {
  const { players } = JSON.parse(document.getElementById("data").textContent);
  const KINDS = { S: "another word in the reference", I: "not in the reference" };
  let playing = null; // one at a time

  function sureness(confidence) {
    if (confidence >= 0.9) return "sure";
    if (confidence >= 0.7) return "fair";
    return confidence >= 0.5 ? "unsure" : "doubtful";
  }

  // The outline: along the highest samples, and back along the lowest.
  function outline(peaks) {
    const count = peaks.length / 2;
    const point = (i, value) => `${(i + 0.5) / count} ${-value}`;
    const places = [...Array(count).keys()];
    const above = places.map((i) => point(i, peaks[2 * i + 1]));
    const below = places.map((i) => point(i, peaks[2 * i])).reverse();
    return `M${[...above, ...below].join("L")}Z`;
  }

  class Player {
    constructor(element, data) {
      this.element = element;
      this.data = data;
      this.find = (selector) => element.querySelector(selector);
      this.words = this.find(".words");
      this.choice = this.find(".shown");
      this.choice?.addEventListener("change", () => this.showWords());
      if (data.audio?.src) this.addAudio(data.audio);
      this.showWords();
      new ResizeObserver(() => this.placeWords()).observe(this.find(".track"));
    }

    addAudio({ src, start, duration, peaks }) {
      this.start = start;
      this.duration = duration;
      this.audio = new Audio(src);
      this.element.append(this.audio);
      for (const path of this.element.querySelectorAll("path")) {
        path.setAttribute("d", outline(peaks));
      }
      this.find(".play").addEventListener("click", () => this.toggle());
      this.find(".seek").addEventListener("input", (event) => this.seek(event.target.value));
      this.find(".speed").addEventListener("change", (event) => {
        this.audio.playbackRate = event.target.value;
      });
      this.audio.addEventListener("play", () => this.showPlaying(true));
      this.audio.addEventListener("pause", () => this.showPlaying(false));
      this.audio.addEventListener("seeked", () => this.showTime());
      this.audio.addEventListener("error", () => this.showProblem());
    }

    get now() {
      return Math.min(Math.max(this.audio.currentTime - this.start, 0), this.duration);
    }

    toggle() {
      if (!this.audio.paused) {
        this.audio.pause();
        return;
      }
      if (this.audio.currentTime < this.start || this.now >= this.duration) this.seek(0);
      this.play();
    }

    play() {
      if (playing !== null && playing !== this) playing.audio.pause();
      playing = this;
      this.audio.play().catch(() => {}); // what is wrong the event `error` tells
    }

    seek(seconds) {
      this.audio.currentTime = this.start + Number(seconds);
      this.showTime();
    }

    showPlaying(is) {
      this.element.classList.toggle("playing", is);
      this.find(".play .label").textContent = is ? "Pause" : "Play";
      if (is) this.follow();
    }

    // While it plays, keep the page in step; a piece of a recording ends before its file.
    follow() {
      this.showTime();
      if (this.now >= this.duration) this.audio.pause();
      if (!this.audio.paused) requestAnimationFrame(() => this.follow());
    }

    showTime() {
      const share = this.now / this.duration;
      this.find(".track").style.setProperty("--played", `${100 * share}%`);
      const seek = this.find(".seek");
      seek.value = this.now;
      seek.setAttribute("aria-valuetext", `${this.now.toFixed(1)} seconds`);
      const [now, all] = [this.now.toFixed(1), this.duration.toFixed(1)];
      this.find(".time").textContent = `${now} s of ${all} s`;
      for (const word of this.words.children) {
        const { start, end } = word.dataset;
        const spoken = start !== undefined && start <= this.now && this.now < end;
        word.classList.toggle("spoken", spoken && !this.audio.paused);
      }
      this.keepInView(share);
    }

    keepInView(share) {
      const box = this.find(".timeline");
      const place = share * box.scrollWidth;
      const away = place < box.scrollLeft || place > box.scrollLeft + box.clientWidth;
      if (away) box.scrollLeft = place - box.clientWidth / 4;
    }

    showProblem() {
      const problem = document.createElement("p");
      problem.className = "problem";
      problem.textContent = "The browser cannot play this audio.";
      this.find(".controls").after(problem);
      this.find(".play").disabled = true;
    }

    showWords() {
      const row = this.data.rows[this.choice?.value ?? this.data.shown];
      const words = row.text.split(" ").filter((word) => word);
      const timed = row.times !== null && this.audio !== undefined;
      this.words.classList.toggle("timed", timed);
      this.words.replaceChildren(...words.map((word, i) => this.item(row, word, i, timed)));
      this.find(".key").hidden = row.confidence === null;
      this.placeWords();
    }

    item(row, text, i, timed) {
      const item = document.createElement("li");
      const word = document.createElement(timed ? "button" : "span");
      const told = [];
      word.className = "word";
      word.textContent = text;
      const confidence = row.confidence?.[i] ?? null;
      if (confidence !== null) {
        word.classList.add(sureness(confidence));
        told.push(`confidence ${confidence.toFixed(2)}`);
      }
      if (KINDS[row.kinds[i]]) {
        word.classList.add("wrong");
        told.push(KINDS[row.kinds[i]]);
      }
      if (timed) {
        const [start, end] = row.times[i];
        word.type = "button";
        word.addEventListener("click", () => {
          this.seek(start);
          this.play();
        });
        item.style.left = `${(100 * start) / this.duration}%`;
        item.style.minWidth = `${(100 * (end - start)) / this.duration}%`;
        Object.assign(item.dataset, { start, end });
        told.push(`${start.toFixed(2)} to ${end.toFixed(2)} s`);
      }
      if (told.length) {
        word.title = told.join(", ");
        word.setAttribute("aria-label", `${text}: ${told.join(", ")}`);
      }
      item.append(word);
      return item;
    }

    // Each word begins below its time, in the first line in which there is room for it.
    placeWords() {
      if (!this.words.classList.contains("timed")) {
        this.words.style.height = "";
        return;
      }
      const ends = [];
      for (const item of this.words.children) {
        let line = ends.findIndex((end) => end <= item.offsetLeft);
        if (line < 0) line = ends.push(0) - 1;
        ends[line] = item.offsetLeft + item.offsetWidth;
        item.style.setProperty("--row", line);
      }
      this.words.style.height = `calc(${ends.length} * var(--line-height))`;
    }
  }

  for (const element of document.querySelectorAll(".player")) {
    const make = () => new Player(element, players[element.dataset.player]);
    const details = element.closest("details");
    if (details === null) make();
    else details.addEventListener("toggle", make, { once: true });
  }
})();
