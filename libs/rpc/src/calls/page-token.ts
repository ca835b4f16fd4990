import { createHmac, timingSafeEqual } from "node:crypto";
import { refuse } from "@rollcall/errors";

const MAC_BYTES = 16;

/**
 * Makes and reads page tokens, which say where a listing continues. A token is opaque: base64url of a MAC and the
 * cursor. The MAC covers the method and the request, so a token is valid only for the listing that it came from. Only
 * this cluster's tokens are accepted.
 */
export interface PageTokens {
  /**
   * Make the token of the page after `cursor`. `listing` contains the method, filter and order, and is the same on
   * every page.
   */
  seal(listing: string, cursor: unknown): string;
  /**
   * Read the cursor of a token; null for the first page. Throws INVALID_PAGE_TOKEN if the token is invalid or belongs
   * to another listing.
   */
  open(listing: string, token: string): unknown;
}

/** Create page tokens. Every process of the cluster can read them. */
export function createPageTokens(clusterSecret: Uint8Array): PageTokens {
  const macOf = (listing: string, cursor: string): Buffer =>
    createHmac("sha256", clusterSecret)
      .update("rollcall-page-v1\n")
      .update(JSON.stringify([listing, cursor]))
      .digest()
      .subarray(0, MAC_BYTES);

  return {
    seal: (listing, cursor) => {
      const text = JSON.stringify(cursor);
      return Buffer.concat([macOf(listing, text), Buffer.from(text)]).toString("base64url");
    },
    open: (listing, token) => {
      if (token === "") return null;
      const bytes = Buffer.from(token, "base64url");
      const mac = bytes.subarray(0, MAC_BYTES);
      const text = bytes.subarray(MAC_BYTES).toString();
      if (mac.length !== MAC_BYTES || !timingSafeEqual(mac, macOf(listing, text))) {
        throw invalidPageToken();
      }
      return JSON.parse(text);
    },
  };
}

function invalidPageToken(): Error {
  const message = "the page token does not match this method, filter and order; start again without a page token";
  return refuse("INVALID_PAGE_TOKEN", message, {
    violations: [{ field: "page_token", description: message }],
  });
}
