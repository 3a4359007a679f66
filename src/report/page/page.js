const marks = [...document.querySelectorAll(".mark")];
let at = -1;
const reveal = (element) => {
  for (let up = element; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
};
const toHash = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  reveal(target);
  target.scrollIntoView({ block: "center" });
};
addEventListener("hashchange", toHash);
toHash();
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "o") {
    const all = [...document.querySelectorAll("details")];
    const open = all.some((one) => !one.open);
    for (const one of all) one.open = open;
    return;
  }
  const step = { n: 1, p: -1 }[event.key];
  if (!step || !marks.length) return;
  marks[at]?.classList.remove("here");
  at = at < 0 && step < 0 ? marks.length - 1 : (at + step + marks.length) % marks.length;
  marks[at].classList.add("here");
  reveal(marks[at]);
  marks[at].scrollIntoView({ block: "center" });
});
