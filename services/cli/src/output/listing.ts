import { OUTPUT_WORDS } from "../choices.ts";
import type { Invocation } from "../invocation.ts";
import { type OutputFormat, outputFormat, type Plain, writePlain } from "./format.ts";
import { choosePaint, columnsOf } from "./style.ts";
import { type Column, csvRecord, TablePrinter } from "./table.ts";
import { printable } from "./text.ts";

/** The options of every listing. */
export interface ListingOptions {
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
  /** False with --no-style. */
  readonly style?: boolean;
}

/** Whether a listing shows every column, and ids instead of names. */
export function isWide({ wide, output }: Invocation<ListingOptions>["options"]): boolean {
  return wide === true || output === "wide";
}

/** How a listing shows its items. */
export interface ListingColumns<Item> {
  readonly columns: readonly Column<Item>[];
  /** What --output name prints: the item's name as other verbs accept it. */
  nameOf(item: Item): string;
}

/** A listing that is read page by page. */
export interface Listing<Page, Item> extends ListingColumns<Item> {
  readonly pages: AsyncIterable<Page>;
  /** The items of a page, for people, names and CSV. */
  itemsOf(page: Page): readonly Item[] | Promise<readonly Item[]>;
  /** All pages as one value, for JSON and YAML. */
  whole(pages: readonly Page[]): Plain;
}

/** Number of items that one call requests by default. */
const PAGE_SIZE = 500;

/** Which part of a list to read. */
export interface PageRange {
  readonly pageSize: number;
  readonly pageToken: string;
}

/**
 * Read a list page by page, starting at `token`, at most `limit` items (0 for all). A page with fewer items than
 * requested is not the last one if it has a token.
 */
export async function* readPages<Page extends { readonly nextPageToken: string }>(
  read: (range: PageRange) => Promise<Page>,
  {
    countOf,
    limit = 0,
    token = "",
    size = PAGE_SIZE,
  }: { countOf(page: Page): number; readonly limit?: number; readonly token?: string; readonly size?: number },
): AsyncGenerator<Page> {
  let left = limit === 0 ? Number.POSITIVE_INFINITY : limit;
  let pageToken = token;
  do {
    const page = await read({ pageSize: Math.min(size, left), pageToken });
    left -= countOf(page);
    pageToken = page.nextPageToken;
    yield page;
  } while (pageToken !== "" && left > 0);
}

/** A list without pages, as one page. */
export async function* onePage<Page>(read: () => Page | Promise<Page>): AsyncGenerator<Page> {
  yield await read();
}

/** Print a listing as --output, --wide and --hide-header request. Returns the last page. Throws UsageError. */
export async function printListing<Page, Item>(
  invocation: Invocation<ListingOptions>,
  listing: Listing<Page, Item>,
): Promise<Page | undefined> {
  const format = outputFormat(invocation.options, OUTPUT_WORDS);
  let last: Page | undefined;
  if (format === "json" || format === "yaml") {
    const pages: Page[] = [];
    for await (const page of listing.pages) pages.push(page);
    await writePlain(invocation.shell, format, listing.whole(pages));
    return pages.at(-1);
  }
  const write = itemWriter(invocation, format, listing);
  for await (const page of listing.pages) {
    write(await listing.itemsOf(page));
    last = page;
  }
  return last;
}

/**
 * Write items as they arrive, as a table, CSV or names. The first call also prints the headings, even if it has no
 * items.
 */
export function itemWriter<Item>(
  { shell, options }: Invocation<ListingOptions>,
  format: Exclude<OutputFormat, "json" | "yaml">,
  { columns, nameOf }: ListingColumns<Item>,
): (items: readonly Item[]) => void {
  const { hideHeader = false } = options;
  switch (format) {
    case "name":
      return (items) => shell.out.write(items.map((item) => `${printable(nameOf(item))}\n`).join(""));
    case "csv": {
      let heading = hideHeader ? "" : csvRecord(columns.map(({ name }) => name));
      return (items) => {
        const records = items.map((item) => csvRecord(columns.map(({ cell }) => rawOf(cell(item)))));
        shell.out.write(heading + records.join(""));
        heading = "";
      };
    }
    case "table":
    case "wide": {
      const wide = isWide(options);
      const look = { hideHeader, wide, paint: choosePaint(shell, options), columns: columnsOf(shell) };
      const table = new TablePrinter(columns, look);
      return (items) => shell.out.write(table.print(items));
    }
  }
}

function rawOf({ text, raw }: { readonly text: string; readonly raw?: string }): string {
  return raw ?? text;
}
