import { Observable } from "../live/observable.ts";

/** Light, dark, or the system's choice. */
export type Theme = "system" | "light" | "dark";

const KEY = "rollcall.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

/** The theme that the user chose. */
export const theme = new Observable<Theme>(THEMES.find((one) => one === localStorage.getItem(KEY)) ?? "system");

/** Apply a theme to the page. */
export function applyTheme(chosen: Theme = theme.value): void {
  if (chosen === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", chosen);
}

/** Store the chosen theme in this browser. */
function chooseTheme(chosen: Theme): void {
  localStorage.setItem(KEY, chosen);
  // Apply it first, because subscribers read the colours of the page.
  applyTheme(chosen);
  theme.set(chosen);
}

/** Switch to the next theme. */
export function nextTheme(): void {
  chooseTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system");
}
