/**
 * Serves the console at `/console/`: precompressed files from the executable, under a policy that blocks other origins.
 *
 * The page uses the public API only. Whether a user is signed in is written into it, which saves a request.
 */

import { brotliCompressSync, constants } from "node:zlib";
import type { Metadata } from "../accounts/metadata.ts";
import { isSignedIn } from "../accounts/sessions/cookie.ts";
import { prefixIn } from "../http/params.ts";
import { type Call, clientRoutes, type Route, RouteResponse } from "../http/route.ts";
import { uiFilesProfile } from "../http/route-profile.ts";
import { once } from "../lib/concurrency.ts";
import { pageFiles } from "./files.ts";

/** Content security policy: own scripts and styles, own server, nothing else. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "frame-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const pageHeaders = {
  "Content-Security-Policy": contentPolicy,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  // A share link that is published somewhere is still not listed by search engines.
  "X-Robots-Tag": "noindex, nofollow",
};

/** Of the frame that previews surveys: without an origin; the renderer of posthog-js writes its styles into the page. */
const framePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
  "sandbox allow-scripts",
].join("; ");
const framePath = "survey-preview";

export const consolePath = "/console/";
const pagePath = "index.html";
/** The page for signed-in users. */
const knownPagePath = "known.html";
const contentTypes: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** Prefixes come from the operator's proxies or settings: usually one, rarely two. */
const prefixesMax = 4;

type Encoding = "br" | "gzip" | "plain";

interface ServedFile {
  type: string;
  etag: string;
  gzip: Uint8Array<ArrayBuffer>;
  br: Uint8Array<ArrayBuffer>;
}

export function consoleRoutes(metadata: Metadata): Route[] {
  const files = once(readFiles);
  /** By prefix of a reverse proxy: the page refers to its files by absolute paths. */
  const moved = new Map<string, Map<string, ServedFile>>();
  const filesBelow = async (prefix: string) => {
    const all = await files();
    if (prefix === "") return all;
    let below = moved.get(prefix);
    if (below === undefined) {
      if (moved.size >= prefixesMax) moved.clear();
      below = new Map([...all].map(([path, file]) => [path, movedBelow(prefix, file)]));
      moved.set(prefix, below);
    }
    return below;
  };

  const handle = async ({ request, baseUrl, now }: Call): Promise<RouteResponse> => {
    const { pathname } = new URL(request.url);
    // Routes match with and without a trailing slash: only the URL shows which it is.
    const prefix = prefixIn(baseUrl);
    if (pathname === "/console") return redirect(prefix + consolePath);
    const known = await filesBelow(prefix);
    const path = pathname.slice(consolePath.length);
    const isFile = path.startsWith("a/");
    if (path === framePath)
      return fileReply(request, known.get(`${framePath}.html`)!, {
        "Content-Security-Policy": framePolicy,
        "Cache-Control": "no-cache",
        Vary: "Accept-Encoding",
      });
    if (!isFile) {
      const page = known.get(isSignedIn(metadata, request, baseUrl, now) ? knownPagePath : pagePath)!;
      return fileReply(request, page, { "Cache-Control": "no-cache", Vary: "Accept-Encoding, Cookie" });
    }
    const file = known.get(path);
    if (file === undefined) return plain(404, "Not found.\n");
    return fileReply(request, file, {
      "Cache-Control": "public, max-age=31536000, immutable",
      Vary: "Accept-Encoding",
    });
  };
  const route = clientRoutes(uiFilesProfile);
  const documentation = { tag: "Console", answers: { 200: { description: "HTML." } }, handle };
  return [
    route("GET", "/console", { summary: "Get the console page", ...documentation }),
    route("GET", "/console/*", { summary: "Get a view or file of the console", ...documentation }),
  ];
}

async function readFiles(): Promise<Map<string, ServedFile>> {
  const found = new Map<string, ServedFile>();
  for (const { path, gzip, brotli } of await pageFiles()) {
    found.set(path, {
      type: contentTypes[path.slice(path.lastIndexOf(".") + 1)] ?? "application/octet-stream",
      etag: Bun.hash.xxHash64(gzip).toString(16),
      gzip: owned(gzip),
      br: owned(brotli),
    });
  }
  const page = found.get(pagePath)!;
  found.set(
    knownPagePath,
    changed(page, (text) => text.replace("<html ", "<html data-signed-in ")),
  );
  return found;
}

/** Rewrites a file for a path prefix. */
function movedBelow(prefix: string, file: ServedFile): ServedFile {
  if (!/^text\//.test(file.type)) return file;
  return changed(file, (text) => text.replace(/(["'`(=])\/console\/a\//g, `$1${prefix}/console/a/`));
}

function changed(file: ServedFile, change: (text: string) => string): ServedFile {
  const bytes = new TextEncoder().encode(change(new TextDecoder().decode(Bun.gunzipSync(file.gzip))));
  return {
    type: file.type,
    etag: Bun.hash.xxHash64(bytes).toString(16),
    gzip: owned(Bun.gzipSync(bytes)),
    br: owned(brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })),
  };
}

function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}

function fileReply(request: Request, file: ServedFile, caching: Record<string, string>): RouteResponse {
  const encoding = encodingFor(request.headers.get("accept-encoding") ?? "");
  const etag = `"${file.etag}-${encoding}"`;
  const headers: Record<string, string> = {
    ...pageHeaders,
    ...caching,
    ETag: etag,
    ...(encoding === "plain" ? {} : { "Content-Encoding": encoding }),
  };
  if (request.headers.get("if-none-match") === etag) return new RouteResponse(304, undefined, headers);
  const bytes = encoding === "plain" ? Bun.gunzipSync(file.gzip) : file[encoding];
  return RouteResponse.create(file.type, bytes, headers);
}

/** The smallest encoding that the client accepts; `q=0` excludes one. */
function encodingFor(accepted: string): Encoding {
  const takes = (coding: string) =>
    accepted.split(",").some((part) => {
      const [name = "", ...parameters] = part
        .trim()
        .toLowerCase()
        .split(/\s*;\s*/);
      return name === coding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    });
  if (takes("br")) return "br";
  return takes("gzip") ? "gzip" : "plain";
}

function redirect(to: string): RouteResponse {
  return new RouteResponse(302, undefined, { ...pageHeaders, Location: to, "Cache-Control": "no-store" });
}

function plain(status: number, text: string): RouteResponse {
  return RouteResponse.text(text, status, { ...pageHeaders, "Cache-Control": "no-store" });
}
