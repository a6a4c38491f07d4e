-- Tells that attempts are alive.
-- ARGV: for each: task, fence
-- Gives: for each 'heard', 'cancel' or 'gone'
local answer, heard = {}, {}
local asked = call('HLEN', prefix .. 'cancels') > 0
-- Changes nothing, and needs no memory: a server that has none lets a script finish what it has begun.
call('PERSIST', running)
for i = 1, #ARGV, 2 do
  local status, fence = match(call('HGET', attempts, ARGV[i]) or '', '^(%a) %d+ (%d+) ')
  local word = 'gone'
  if status == 'r' and fence == ARGV[i + 1] then
    heard[#heard + 1] = now_text
    heard[#heard + 1] = ARGV[i]
    word = asked and call('HEXISTS', prefix .. 'cancels', ARGV[i]) == 1 and 'cancel' or 'heard'
  end
  answer[(i + 1) / 2] = word
end
if #heard > 0 then
  call('ZADD', running, unpack(heard))
end
return answer
