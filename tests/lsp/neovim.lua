-- SPDX-License-Identifier: Apache-2.0
-- Run by neovim.sh in Neovim: opens a file with a misspelt key, and says as TAP what the editor shows of it.
local nxcfg, n = vim.env.NXCFG, 0
local function report(good, name, detail)
  n = n + 1
  io.stdout:write(('%sok %d - %s\n'):format(good and '' or 'not ', n, name))
  if not good then io.stdout:write('# ' .. tostring(vim.inspect(detail)):gsub('\n', '\n# ') .. '\n') end
end
local function wait(is_true)
  return vim.wait(20000, is_true, 20)
end
local function diagnostics()
  return vim.diagnostic.get(0)
end
local function ask(method, position)
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = position }
  local answers = vim.lsp.buf_request_sync(0, method, params, 20000) or {}
  for _, answer in pairs(answers) do return answer.result end
end

vim.cmd('edit ' .. vim.fn.fnameescape(vim.env.CONFIGURATION))
local client = vim.lsp.start_client({ name = 'nxcfg', cmd = { nxcfg, 'lsp' }, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(0, client)

local line, text
for i, of in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
  if of:find('max_stepz') then line, text = i - 1, of end
end
report(wait(function() return #diagnostics() > 0 end), 'what is wrong is shown', diagnostics())
local first = diagnostics()[1] or {}
report(first.lnum == line and first.col == text:find('max_stepz') - 1, 'at its place', first)
report((first.message or ''):find('max_steps') ~= nil, 'with what is meant', first)

local hover = ask('textDocument/hover', { line = line + 2, character = 4 })
report(hover ~= nil and vim.inspect(hover):find('log_every') ~= nil, 'an option is explained', hover)
local completion = ask('textDocument/completion', { line = line, character = text:find('max_') + 3 })
report(completion ~= nil and vim.inspect(completion):find('max_steps') ~= nil, 'and completed', completion)

-- Typed as a user types it: Neovim tells the server what changed.
local at = text:find('z') - 1
vim.api.nvim_buf_set_text(0, line, at, line, at + 1, { 's' })
report(wait(function() return #diagnostics() == 0 end), 'mended, it is shown no longer', diagnostics())
vim.api.nvim_buf_set_lines(0, -1, -1, false, { 'nosuchsection: 1' })
report(wait(function() return #diagnostics() > 0 end), 'and another mistake is', diagnostics())

vim.lsp.stop_client(client)
report(wait(function() return vim.lsp.client_is_stopped(client) end), 'the server ends with the editor', nil)
io.stdout:write(('1..%d\n'):format(n))
vim.cmd('qall!')
