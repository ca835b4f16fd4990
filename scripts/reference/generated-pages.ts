import { apiPages } from "./api-pages.ts";
import { chartPage } from "./chart-page.ts";
import { cliPage } from "./cli-page.ts";
import { configurationPage } from "./configuration-page.ts";
import { errorsPage } from "./errors-page.ts";
import { eventsPage } from "./events-page.ts";
import { exitCodesPage } from "./exit-codes-page.ts";

/** The folder of the API's pages, one for each package of the schema. */
export const API_FOLDER = "docs/reference/api";

/** Generate all pages. Returns their texts, keyed by path in the repository. */
export async function generatedPages(): Promise<ReadonlyMap<string, string>> {
  const api = await apiPages();
  return new Map([
    ["deploy/chart/README.md", chartPage()],
    ["docs/events.md", eventsPage()],
    ["docs/reference/cli.md", await cliPage()],
    ["docs/reference/configuration.md", configurationPage()],
    ["docs/reference/errors.md", await errorsPage()],
    ["docs/reference/exit-codes.md", exitCodesPage()],
    ...[...api].map(([name, text]): [string, string] => [`${API_FOLDER}/${name}`, text]),
  ]);
}
