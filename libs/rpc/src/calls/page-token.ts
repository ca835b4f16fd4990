import { createHmac, timingSafeEqual } from "node:crypto";
import { refuse } from "@rollcall/errors";

const MAC_BYTES = 16;

/**
 * Where a listing goes on. The token is opaque: base64url of a MAC and the cursor. The MAC covers the method and what
 * was asked for, so a token serves only the listing that it came from, and a cursor that is opened was made here.
 */
export interface PageTokens {
  /** The token of the page after `cursor`. `listing` names the method, filter and order, the same on every page. */
  seal(listing: string, cursor: unknown): string;
  /**
   * The cursor of a token; null for the first page. Throws INVALID_PAGE_TOKEN for any token but one of this listing.
   */
  open(listing: string, token: string): unknown;
}

/** Make page tokens that every process of the cluster can open. */
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
  const message = "the page token was not made by this method with the same filter and order; begin again without one";
  return refuse("INVALID_PAGE_TOKEN", message, {
    violations: [{ field: "page_token", description: message }],
  });
}
