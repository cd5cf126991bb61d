// What the client knows without VS Code, so that it can be tested against the server alone.

export interface Settings {
  path: string;
  likely: boolean | null;
  minSeverity: string | null;
  select: string[];
  ignore: string[];
}

/** The server's own command, which asks for what is known about a line. */
export const EXPLAIN = "sampler-lint.explain";

/** How the server is started; what is left open is what the project's configuration says. */
export function serverCommand(settings: Settings): { command: string; args: string[] } {
  const values: [string, unknown][] = [
    ["likely", settings.likely],
    ["min-severity", settings.minSeverity],
    ["select", settings.select.length ? settings.select : null],
    ["extend-ignore", settings.ignore.length ? settings.ignore : null],
  ];
  const told = values.filter(([, value]) => value !== null);
  // What JSON writes of these is TOML.
  const options = told.flatMap(([key, value]) => ["--config", `${key}=${JSON.stringify(value)}`]);
  return { command: settings.path, args: ["server", ...options] };
}

/** The request for what is known about a line, which is counted from 0 as editors do. */
export function explainRequest(uri: string, line: number) {
  return { command: EXPLAIN, arguments: [uri, line] };
}
