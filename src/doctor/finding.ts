/** What the doctor says about one thing it looked at. */
export interface Finding {
  check: "permissions" | "disk" | "clock" | "files" | "events" | "journal" | "quarantine" | "port";
  level: "ok" | "warning" | "error";
  message: string;
  /** How to mend it; null when nothing is wrong. */
  hint: string | null;
}

export const ok = (check: Finding["check"], message: string): Finding => ({
  check,
  level: "ok",
  message,
  hint: null,
});

export const warning = (check: Finding["check"], message: string, hint: string): Finding => ({
  check,
  level: "warning",
  message,
  hint,
});

export const failure = (check: Finding["check"], message: string, hint: string): Finding => ({
  check,
  level: "error",
  message,
  hint,
});
