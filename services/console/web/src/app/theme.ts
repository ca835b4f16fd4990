import { Observable } from "../live/observable.ts";

/** Light, dark, or as the system has it. */
export type Theme = "system" | "light" | "dark";

const KEY = "rollcall.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

/** The theme that the reader chose. */
export const theme = new Observable<Theme>(THEMES.find((one) => one === localStorage.getItem(KEY)) ?? "system");

/** Show the page in the chosen theme. */
export function applyTheme(): void {
  if (theme.value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme.value);
}

/** Choose a theme, for this browser. */
function chooseTheme(chosen: Theme): void {
  localStorage.setItem(KEY, chosen);
  theme.set(chosen);
  applyTheme();
}

/** Go on to the next theme. */
export function nextTheme(): void {
  chooseTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system");
}
