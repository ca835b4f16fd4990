import { describe, expect, it } from "@jest/globals";
import { readPages } from "./listing.ts";

/** A server with ten items, whose pages are shorter than requested. */
function pages(most: number) {
  const asked: string[] = [];
  const read = async ({ pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string }) => {
    asked.push(`${pageToken}+${pageSize}`);
    const start = Number(pageToken);
    const end = Math.min(10, start + Math.min(pageSize, most));
    const items = Array.from({ length: end - start }, (_, at) => start + at);
    return { items, nextPageToken: end < 10 ? `${end}` : "" };
  };
  return { asked, read };
}

async function itemsOf(
  read: ReturnType<typeof pages>["read"],
  range: { limit?: number; token?: string; size?: number },
) {
  const items: number[] = [];
  for await (const page of readPages(read, { ...range, countOf: (it) => it.items.length })) items.push(...page.items);
  return items;
}

describe("readPages()", () => {
  it("should continue after short pages", async () => {
    const { read, asked } = pages(3);
    expect(await itemsOf(read, { size: 5 })).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(asked).toEqual(["+5", "3+5", "6+5", "9+5"]);
  });

  it("should stop at the limit, and start at the token", async () => {
    const { read, asked } = pages(3);
    expect(await itemsOf(read, { size: 5, limit: 4, token: "2" })).toEqual([2, 3, 4, 5]);
    expect(asked).toEqual(["2+4", "5+1"]);
  });
});
