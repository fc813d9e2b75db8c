/** The ways in which a whole request is refused. Single events are dropped instead, see `outcome.ts`. */

import { AppError } from "../../lib/errors.ts";

/** A request that the client has to change before sending it again. `message` is what the client is told. */
export abstract class RequestRefused extends AppError {
  abstract readonly status: 400 | 401 | 408 | 413;
  abstract readonly type: "validation_error" | "authentication_error";
}

/** The body cannot be decoded, is not JSON, or has none of the accepted shapes. */
export class InvalidPayload extends RequestRefused {
  readonly code = "invalid_payload";
  readonly status = 400;
  readonly type = "validation_error";
}

/** No body, or nothing in its wrappings. */
export class NothingSent extends InvalidPayload {
  constructor() {
    super("request missing data payload: send the JSON of an event, or of a batch of events");
  }
}

/** One item of a request is not what an event has to be, and so nothing of the request is taken. */
export class InvalidItem extends InvalidPayload {
  constructor(
    message: string,
    /** A short name of what is wrong with the item. */
    readonly reason: "not_an_object" | "invalid_properties" | "nested_too_deep",
  ) {
    super(message);
  }
}

/** The body is larger than the limit, as sent or once decompressed. */
export class PayloadTooLarge extends RequestRefused {
  readonly code = "payload_too_large";
  readonly status = 413;
  readonly type = "validation_error";
  constructor(readonly limitBytes: number) {
    super(`maximum event size exceeded: the request is larger than ${limitBytes} bytes`);
  }
}

/** An event holds so many small parts that parsing it would take seconds and a hundred times its memory. */
export class PayloadTooDense extends RequestRefused {
  readonly code = "payload_too_large";
  readonly status = 413;
  readonly type = "validation_error";
  constructor(limit: number) {
    super(`maximum event size exceeded: an event holds more than ${limit} JSON objects and arrays`);
  }
}

/** No usable project key was sent. */
export class KeyRefused extends RequestRefused {
  readonly status = 401;
  readonly type = "authentication_error";
  constructor(
    readonly code: "missing_api_key" | "invalid_api_key",
    message: string,
  ) {
    super(message);
  }
}

/** The client went away or stopped before the end of its body. */
export class BodyInterrupted extends RequestRefused {
  readonly code = "request_timeout";
  readonly status = 408;
  readonly type = "validation_error";
  constructor() {
    super("client stopped sending data");
  }
}
