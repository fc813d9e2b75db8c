/** Responses of handlers, before the edge adds the common headers. */

const jsonType = "application/json";

type Headers = Readonly<Record<string, string>>;
type Bytes = string | Uint8Array<ArrayBuffer>;

/** A response other than 200 with a JSON body. */
export class RouteResponse {
  /** @param body JSON; undefined for an empty body. */
  constructor(
    readonly status: number,
    readonly body?: unknown,
    readonly headers: Headers = {},
  ) {}

  /** Serialized JSON. */
  static json(text: Bytes, headers: Headers = {}, status = 200): RouteResponse {
    return new RouteResponse(status, new Written(jsonType, text), headers);
  }

  static text(text: string, status = 200, headers: Headers = {}): RouteResponse {
    return new RouteResponse(status, new Written("text/plain; charset=utf-8", text), headers);
  }

  /** A body of any other type. */
  static create(contentType: string, bytes: Bytes, headers: Headers = {}, status = 200): RouteResponse {
    return new RouteResponse(status, new Written(contentType, bytes), headers);
  }

  /** The serialized body; undefined for an empty one. */
  written(): Written | undefined {
    const { body } = this;
    if (body === undefined || body instanceof Written) return body;
    return new Written(jsonType, JSON.stringify(body));
  }
}

/** A serialized body. */
class Written {
  constructor(
    readonly contentType: string,
    readonly bytes: Bytes,
  ) {}
}

/** Weak ETag of a content: gzip and identity share it. */
export function weakTag(content: string | Uint8Array): string {
  return `W/"${new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, 32)}"`;
}

/** Whether an `If-None-Match` header contains a tag; strong and weak forms of a tag are equal. */
export function isNotModified(ifNoneMatch: string | null | undefined, etag: string): boolean {
  if (!ifNoneMatch) return false;
  if (ifNoneMatch.trim() === "*") return true;
  const bare = (tag: string) => tag.trim().replace(/^W\//, "");
  return ifNoneMatch.split(",").some((tag) => bare(tag) === bare(etag));
}
