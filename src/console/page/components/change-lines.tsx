/** Changes in words, one line each. */

export function ChangeLines({ lines }: { lines: readonly string[] }) {
  return (
    <ul class="changes">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}
