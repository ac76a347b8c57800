// Measures the reports in the frames of this page: elements beyond their boxes, and faint text.
"use strict";
const SLACK = 1.5;

function brightness(colour) {
  const parts = colour.match(/[\d.]+/g).slice(0, 3).map((c) => {
    const share = c / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

function contrast(a, b) {
  const [low, high] = [brightness(a), brightness(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

// Whether an element around this one scrolls or hides what is too wide.
function isContained(element, view) {
  for (let at = element.parentElement; at; at = at.parentElement) {
    if (view.getComputedStyle(at).overflowX !== "visible") return true;
  }
  return false;
}

function measure(frame) {
  const view = frame.contentWindow, page = frame.contentDocument, wrong = [];
  const say = (element, what) =>
    wrong.push(`${element.tagName}.${element.getAttribute("class")} ${what}: ${element.textContent.slice(0, 60)}`);
  const root = page.documentElement, ground = view.getComputedStyle(page.body).backgroundColor;
  if (root.scrollWidth > root.clientWidth) say(root, `is ${root.scrollWidth} wide, not ${root.clientWidth}`);
  const elements = page.body.querySelectorAll("*");
  for (const element of elements) {
    const box = element.getBoundingClientRect();
    const svg = element.ownerSVGElement, around = (svg || element.parentElement).getBoundingClientRect();
    if (box.width === 0 || box.height === 0 || (!svg && isContained(element, view))) continue;
    if (svg && element.tagName !== "text") continue;
    const clipped = view.getComputedStyle(element).position === "absolute";
    if (!clipped && (box.left < around.left - SLACK || box.right > around.right + SLACK)) {
      say(element, `${box.left} to ${box.right} is beyond ${around.left} to ${around.right}`);
    }
    if (svg && (box.top < around.top - SLACK || box.bottom > around.bottom + SLACK)) {
      say(element, `${box.top} to ${box.bottom} is beyond ${around.top} to ${around.bottom}`);
    }
    if (!svg && element.tagName !== "svg" && view.getComputedStyle(element).overflowX === "visible" &&
        view.getComputedStyle(element).display !== "inline" && element.scrollWidth > element.clientWidth + SLACK) {
      say(element, `holds ${element.scrollWidth}, is ${element.clientWidth}`);
    }
  }
  for (const element of page.querySelectorAll("h1, h2, h3, h4, p, td, th, a, summary, figcaption, li")) {
    const found = contrast(view.getComputedStyle(element).color, ground);
    if (found < 4.5) say(element, `has contrast ${found.toFixed(2)}`);
  }
  return {width: frame.width, elements: elements.length, ground, wrong: wrong.slice(0, 20)};
}

addEventListener("load", () => {
  const pre = document.createElement("pre");
  pre.id = "found";
  pre.textContent = JSON.stringify([...document.querySelectorAll("iframe")].map(measure));
  document.body.replaceChildren(pre);
});
