/** Answers of handlers, before the edge adds what every answer carries. */

const jsonType = "application/json";

type Headers = Readonly<Record<string, string>>;
type Bytes = string | Uint8Array<ArrayBuffer>;

/** An answer that is more than 200 with a JSON body. */
export class Reply {
  /** @param body JSON; undefined for an empty body. */
  constructor(
    readonly status: number,
    readonly body?: unknown,
    readonly headers: Headers = {},
  ) {}

  /** JSON that is written already. */
  static json(text: Bytes, headers: Headers = {}, status = 200): Reply {
    return new Reply(status, new Written(jsonType, text), headers);
  }

  /** Plain text for people. */
  static text(text: string, status = 200, headers: Headers = {}): Reply {
    return new Reply(status, new Written("text/plain; charset=utf-8", text), headers);
  }

  /** A body of any other kind. */
  static of(contentType: string, bytes: Bytes, headers: Headers = {}, status = 200): Reply {
    return new Reply(status, new Written(contentType, bytes), headers);
  }

  /** What goes over the wire; undefined for an empty body. */
  written(): Written | undefined {
    const { body } = this;
    if (body === undefined || body instanceof Written) return body;
    return new Written(jsonType, JSON.stringify(body));
  }
}

/** A body as it goes over the wire. */
class Written {
  constructor(
    readonly contentType: string,
    readonly bytes: Bytes,
  ) {}
}
