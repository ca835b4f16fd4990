import { apiPages } from "./api-pages.ts";
import { cliPage } from "./cli-page.ts";
import { configurationPage } from "./configuration-page.ts";
import { errorsPage } from "./errors-page.ts";
import { eventsPage } from "./events-page.ts";
import { exitCodesPage } from "./exit-codes-page.ts";

/** The folder of the API's pages, of which each belongs to a package of the schema. */
export const API_FOLDER = "docs/reference/api";

/** Every page that is generated from sources: its text by its path in the repository. */
export async function generatedPages(): Promise<ReadonlyMap<string, string>> {
  const api = await apiPages();
  return new Map([
    ["docs/events.md", eventsPage()],
    ["docs/reference/cli.md", await cliPage()],
    ["docs/reference/configuration.md", configurationPage()],
    ["docs/reference/errors.md", await errorsPage()],
    ["docs/reference/exit-codes.md", exitCodesPage()],
    ...[...api].map(([name, text]): [string, string] => [`${API_FOLDER}/${name}`, text]),
  ]);
}
