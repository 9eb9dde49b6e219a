// A page of runs that go on loads itself again, and is then as its reader has left it.

const stateName = "tranche report " + location.pathname;
const pageState = {}; // what parts of the page keep: {curves: {...}}

function restoreState() {
  try {
    return JSON.parse(sessionStorage.getItem(stateName)) || {};
  } catch (problem) { // no storage: the page begins as it is
    return {};
  }
}

// Tables and details that are open, by what they are called.
function openNames() {
  const tables = [...document.querySelectorAll("button[aria-expanded=true]")]
    .map((button) => button.getAttribute("aria-label"));
  const details = [...document.querySelectorAll("details[open] > summary")]
    .map((summary) => summary.textContent);
  return tables.concat(details);
}

function openAgain(names) {
  for (const button of document.querySelectorAll("button[aria-expanded=false]")) {
    if (names.includes(button.getAttribute("aria-label"))) { button.click(); }
  }
  for (const summary of document.querySelectorAll("details > summary")) {
    if (names.includes(summary.textContent)) { summary.parentElement.open = true; }
  }
}

function saveState() {
  try {
    sessionStorage.setItem(stateName, JSON.stringify({...pageState, open: openNames()}));
  } catch (problem) {
    // it begins anew
  }
}

// Not while it is out of sight, and not while a button is held: that is a zoom.
function reloadLater() {
  const seconds = Number(document.body.dataset.reload || 0);
  let held = false;
  if (seconds === 0) { return; }
  document.addEventListener("pointerdown", () => { held = true; });
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => { held = false; });
  }
  setInterval(() => {
    if (!held && document.visibilityState === "visible") {
      saveState();
      location.reload();
    }
  }, 1000 * seconds);
}
