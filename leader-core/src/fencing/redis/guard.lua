-- Lets a write through unless a newer run has written, and keeps the fence. The guard is raised before the write: one that fails half-way
-- has kept older runs out all the same.
-- KEYS: 1 guard, then those of the write
-- ARGV: 1 fence, 2 how old a fence without a guard may be (ms) or '', 3 how long the guard lives after its last write (ms), then those
--       of the write
-- Gives: 'accepted' and what the write gives, 'fenced' with the fence that is held, 'forgotten' with the lowest fence that is taken
--        without a guard, 'odd' with what stands in the guard's place
local fence = ARGV[1]
-- As text: a Lua number is exact up to 2^53 only.
local function is_lower(a, b)
  return #a < #b or (#a == #b and a < b)
end
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
  return { 'odd', redis.call('TYPE', KEYS[1]).ok }
end
if held and not (held == '0' or string.find(held, '^[1-9]%d*$')) then
  return { 'odd', string.sub(held, 1, 100) }
end
if held and is_lower(fence, held) then
  return { 'fenced', held }
end
if ARGV[2] == '' then
  redis.call('SET', KEYS[1], fence)
else
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local lowest = string.format('%.0f', math.max(now - tonumber(ARGV[2]) * 1000, 0))
  if not held and is_lower(fence, lowest) then
    return { 'forgotten', lowest }
  end
  -- Kept until the fence itself is that old: whoever is lower is then older than that.
  local ahead = math.max(math.ceil((tonumber(fence) - now) / 1000), 0)
  redis.call('SET', KEYS[1], fence, 'PX', string.format('%.0f', ahead + tonumber(ARGV[3])))
end
local keys, args = {}, {}
for i = 2, #KEYS do
  keys[i - 1] = KEYS[i]
end
for i = 4, #ARGV do
  args[i - 3] = ARGV[i]
end
local given = write(keys, args)
if type(given) == 'table' and given.err then
  return given
end
if type(given) ~= 'table' or given.ok then
  given = { given }
end
-- One flat list of text, which every client can read.
local answer = { 'accepted' }
for _, value in ipairs(given) do
  if type(value) == 'table' then
    value = value.ok or value.err or cjson.encode(value)
  elseif type(value) == 'number' then
    value = string.format(value % 1 == 0 and '%.0f' or '%.17g', value)
  elseif type(value) == 'boolean' then
    value = value and '1' or ''
  end
  answer[#answer + 1] = value
end
return answer
