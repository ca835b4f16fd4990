import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** Serves the single image of an OCI layout over the registry protocol, as `test:1` and by its digest. */
export class ImageRegistry {
  /** The requests that were served, as method and path. */
  readonly requests: string[] = [];
  readonly #server: Server;
  readonly digest: string;

  private constructor(layout: string, digest: string) {
    this.digest = digest;
    this.#server = createServer((incoming, outgoing) => {
      const path = incoming.url ?? "";
      this.requests.push(`${incoming.method} ${path}`);
      const [, kind, reference = ""] = /^\/v2\/test\/(manifests|blobs)\/(.+)$/.exec(path) ?? [];
      const of = reference === "1" ? digest : reference;
      if (path === "/v2/") return void outgoing.end("{}");
      readFile(join(layout, "blobs/sha256", of.replace("sha256:", ""))).then(
        (bytes) => {
          const type = kind === "manifests" ? "application/vnd.oci.image.manifest.v1+json" : "application/octet-stream";
          outgoing.writeHead(200, {
            "content-type": type,
            "docker-content-digest": of,
            "content-length": bytes.length,
          });
          outgoing.end(incoming.method === "HEAD" ? undefined : bytes);
        },
        () => outgoing.writeHead(404).end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}'),
      );
    });
  }

  static async serve(layout: string): Promise<ImageRegistry> {
    const index = JSON.parse(await readFile(join(layout, "index.json"), "utf8"));
    const registry = new ImageRegistry(layout, index.manifests[0].digest);
    await new Promise<void>((resolve) => registry.#server.listen(0, "127.0.0.1", resolve));
    return registry;
  }

  /** The registry's address as part of image names. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
